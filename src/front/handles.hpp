// What the opaque types of the C ABI are.
#pragma once

#include "base/settings.hpp"
#include "kintsugi/kintsugi.h"
#include "plan/execute.hpp"
#include "plan/plan.hpp"

struct kintsugi_handle_s {
  kintsugi::core::SettingLayer settings;
  kintsugi_log log = nullptr;
  void* log_user = nullptr;
  kintsugi::core::Report report;
};

struct kintsugi_plan_s {
  kintsugi::core::Plan plan;
};

struct kintsugi_prepared_s {
  kintsugi::core::Prepared prepared;
};
