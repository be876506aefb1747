// Contents of the opaque types of the C ABI.
#pragma once

#include <memory>

#include "base/settings.hpp"
#include "execute/device/memory.hpp"
#include "execute/execute.hpp"
#include "kintsugi/kintsugi.h"
#include "planner/plan.hpp"

struct kintsugi_handle_s {
  kintsugi::core::SettingLayer settings;
  kintsugi_log log = nullptr;
  void* log_user = nullptr;
  kintsugi::core::Report report;
  kintsugi::core::DeviceReports device_reports;
  // Device's report of the last execution; nullptr if that ran on no device or was a native product.
  std::shared_ptr<const kintsugi::core::DeviceReportMemory> device_report;
};

struct kintsugi_plan_s {
  kintsugi::core::Plan plan;
};

struct kintsugi_prepared_s {
  kintsugi::core::Prepared prepared;
};
