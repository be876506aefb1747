// Calls of the C ABI that plan or execute. They read the settings, make a plan or find a kept one, and
// execute it with report and log.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/settings.hpp"
#include "execute/device/memory.hpp"
#include "execute/execute.hpp"
#include "front/describe.hpp"
#include "kintsugi/kintsugi.h"
#include "planner/plan.hpp"

// Contents of the opaque types of the C ABI.
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
  std::string report_scheme;  // text of the last kintsugi_report_summary
};

// The plan is shared, because the report of a handle still needs it after kintsugi_plan_destroy().
struct kintsugi_plan_s {
  std::shared_ptr<const kintsugi::core::Plan> plan;
  // Texts of kintsugi_plan_summary, made by the first call that asks for them.
  std::once_flag made_words{};
  kintsugi::core::PlanWords words{};
};

struct kintsugi_prepared_s {
  kintsugi::core::Prepared prepared;
};

namespace kintsugi::core {

// Returns the settings for calls with the handle and without options.
Settings settings_in_force(kintsugi_handle handle);

// Returns a new plan, which the caller keeps. Fails as make_plan() does, and for bad arguments.
std::shared_ptr<const Plan> plan_of_caller(kintsugi_handle handle, const kintsugi_problem* problem,
                                           const kintsugi_options* options);
// Returns a new plan for the problem and the settings in `description` (kintsugi_plan_read).
std::shared_ptr<const Plan> plan_of_description(kintsugi_handle handle, const char* description,
                                                const kintsugi_options* options);

// Executes the plan. If there is a handle, it gets the report.
void execute_for_caller(kintsugi_handle handle, const std::shared_ptr<const Plan>& plan,
                        const kintsugi_operands* operands);

// Computes the product by a kept plan of an earlier call, or by a new plan. If there is a handle, it gets the
// report.
void multiply_for_caller(kintsugi_handle handle, const kintsugi_problem* problem,
                         const kintsugi_options* options, const kintsugi_operands* operands);

// Computes `count` products as multiply_for_caller() would compute each of them. All arguments are checked
// and all plans made before the first product.
void multiply_groups_for_caller(kintsugi_handle handle, std::int64_t count, const kintsugi_problem* problems,
                                const kintsugi_options* options, const kintsugi_operands* operands);

// Computes a product of host matrices as multiply_for_caller() does, unless the policy auto selects the
// native product alone. Returns false then, and C is unchanged.
bool multiply_unless_native(const kintsugi_problem& problem, const kintsugi_options* options,
                            const kintsugi_operands& operands);

}  // namespace kintsugi::core
