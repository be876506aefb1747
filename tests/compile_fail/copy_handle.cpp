// expect: use of deleted function
#include "kintsugi/kintsugi.hpp"

kintsugi::Handle copy(const kintsugi::Handle& handle) { return handle; }
