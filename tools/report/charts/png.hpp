// PNG pictures, drawn from SVG by librsvg's rsvg-convert.
#pragma once

#include <string>

namespace kintsugi::tools {

// Fails if rsvg-convert is not on PATH; `flag` is for the message.
void require_png(const std::string& flag);

// Draws the picture of `svg_file` into `png_file`; fails, naming `flag`, if the converter fails.
void write_png(const std::string& flag, const std::string& svg_file, const std::string& png_file);

}  // namespace kintsugi::tools
