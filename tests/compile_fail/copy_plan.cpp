// expect: use of deleted function
#include "kintsugi/kintsugi.hpp"

kintsugi::Plan copy(const kintsugi::Plan& plan) { return plan; }
