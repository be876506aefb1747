// Contents of the opaque types of the C ABI.
#pragma once

#include <memory>
#include <string>

#include "base/settings.hpp"
#include "execute/device/memory.hpp"
#include "execute/execute.hpp"
#include "kintsugi/kintsugi.h"
#include "planner/plan.hpp"

struct kintsugi_handle_s {
  kintsugi::core::SettingLayer settings;
  std::string settings_text;  // settings.text(), kept because every call compares it (front/plan_cache.hpp)
  kintsugi_log log = nullptr;
  void* log_user = nullptr;
  kintsugi::core::Queue queue;  // for device matrices of calls that name no queue
  kintsugi::core::Report report;
  kintsugi::core::DeviceReports device_reports;  // memory for the reports of devices, one per context
  // Device report of the last execution; nullptr if the execution was on the host or native.
  std::shared_ptr<const kintsugi::core::DeviceReportMemory> device_report;
};

// The plan is shared, because the report of a handle still needs it after kintsugi_plan_destroy().
struct kintsugi_plan_s {
  std::shared_ptr<const kintsugi::core::Plan> plan;
};

struct kintsugi_prepared_s {
  kintsugi::core::Prepared prepared;
};
