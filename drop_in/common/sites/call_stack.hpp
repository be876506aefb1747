// Call stacks, which tell calls apart that come from one place of a library.
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "place.hpp"

namespace kintsugi::drop_in {

// Return addresses of a call and of its callers, the innermost first.
struct CallStack {
  static constexpr std::size_t most_frames = 64;

  std::array<const void*, most_frames> frames = {};
  std::size_t count = 0;

  bool operator==(const CallStack& other) const;
};

struct CallStackHash {
  std::size_t operator()(const CallStack& stack) const;
};

// Reads up to `most` frames of this thread's stack, beginning with the one that returns to `return_address`,
// by the unwind tables of the loaded files. Ends before code that has no tables. Returns `return_address`
// alone if the stack lacks it.
CallStack read_stack(const void* return_address, std::size_t most);

// Returns the places of a call's callers: frames 1 and beyond, up to the function main.
std::vector<Place> callers_of(const CallStack& stack);

// Returns the name of a site with its callers: the names of all frames with " < " between.
std::string name_with_callers(const std::string& name, const std::vector<Place>& callers);

// Returns the member `callers` of a site in the reports.
nlohmann::ordered_json callers_json(const std::vector<Place>& callers);

// Number of frames in the name of a site, at least 1.
std::size_t frames_in(const std::string& name);

// Drops the outermost frame of a site's name. Returns false if only one frame is left.
bool drop_outermost_frame(std::string& name);

}  // namespace kintsugi::drop_in
