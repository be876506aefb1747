// expect: use of deleted function
#include "kintsugi/kintsugi.hpp"

kintsugi::Prepared copy(const kintsugi::Prepared& prepared) { return prepared; }
