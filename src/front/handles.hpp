// What the opaque types of the C ABI are.
#pragma once

#include <memory>

#include "base/settings.hpp"
#include "kintsugi/kintsugi.h"
#include "plan/device_memory.hpp"
#include "plan/execute.hpp"
#include "plan/plan.hpp"

struct kintsugi_handle_s {
  kintsugi::core::SettingLayer settings;
  kintsugi_log log = nullptr;
  void* log_user = nullptr;
  kintsugi::core::Report report;
  // What the device found out in the last execution there, with the engine; none before the first plan for one.
  std::shared_ptr<kintsugi::core::DeviceReport> device_report;
  const kintsugi::core::Engine* device_engine = nullptr;
  bool reads_device_report = false;  // the last execution wrote it
};

struct kintsugi_plan_s {
  kintsugi::core::Plan plan;
};

struct kintsugi_prepared_s {
  kintsugi::core::Prepared prepared;
};
