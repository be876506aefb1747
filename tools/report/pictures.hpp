// Figures as files: an SVG for each picture, and a PNG that librsvg's rsvg-convert draws from it.
#pragma once

#include <string>
#include <vector>

#include "report/figures.hpp"

namespace kintsugi::tools {

// Makes the folder; `flag` is for the message.
void make_folder(const std::string& flag, const std::string& folder);
void write_text(const std::string& name, const std::string& text);

// Folders for each kind of file; "": none of that kind.
struct PictureFolders {
  std::string svg;
  std::string png;
};

// Writes the pictures; returns the names of the files, in the order of figures and pictures.
std::vector<std::string> write_pictures(const PictureFolders& folders, const std::vector<Figure>& figures);

// Fails if rsvg-convert is not on PATH; `flag` is for the message.
void require_png(const std::string& flag);

}  // namespace kintsugi::tools
