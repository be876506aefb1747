#include "execute/report.hpp"
#include "front/describe.hpp"
#include "front/json.hpp"

namespace kintsugi::core {

namespace {

Json adapted_json(const std::optional<Report::Adapted>& adapted) {
  if (!adapted) return {};
  const Program& program = adapted->program;
  Json json = {{"scheme", scheme_name(*adapted->scheme, adapted->parameters)},
               {"split_a", split_json(program.split_a)},
               {"split_b", split_json(program.split_b)}};
  add_bounds(json, program, adapted->accumulator, adapted->k);
  return json;
}

Json candidates_json(const Report& report) {
  Json json = Json::array();
  const Plan* plan = report.executed_plan();
  if (plan == nullptr) return json;
  for (std::size_t index = 0; index < plan->candidates.size(); ++index) {
    if (report.items[index] == 0) continue;
    Json candidate = candidate_json(plan->candidates[index]);
    candidate["items"] = report.items[index];
    json.push_back(candidate);
  }
  return json;
}

// Returns the counts. Numbers of slices and products are means over all blocks, including blocks in fast
// mode.
Json ozaki1_json(const Ozaki1Counts& counts) {
  if (counts.blocks == 0) return {};
  const auto mean = [&](std::int64_t sum) {
    return static_cast<double>(sum) / static_cast<double>(counts.blocks);
  };
  return {{"blocks", counts.blocks},
          {"fast_blocks", counts.fast_blocks},
          {"slices_a", mean(counts.slices_a)},
          {"slices_b", mean(counts.slices_b)},
          {"products", mean(counts.products)},
          {"seconds",
           {{"split_a", counts.split_a_seconds},
            {"split_b", counts.split_b_seconds},
            {"products", counts.product_seconds},
            {"summation", counts.summation_seconds}}}};
}

// Returns the numbers of tiles of both operands, and the numbers of tiles that fail Eq. 9 of MixPert. The
// half-precision program multiplies failing tiles.
Json tiles_json(const Report& report) {
  if (report.tiles_a.tiles == 0) return {};
  const auto share = [](const TileCounts& counts) {
    return static_cast<double>(counts.failing) / static_cast<double>(counts.tiles);
  };
  return {{"a", report.tiles_a.tiles},
          {"b", report.tiles_b.tiles},
          {"failing_a", report.tiles_a.failing},
          {"failing_b", report.tiles_b.failing},
          {"failing_share_a", share(report.tiles_a)},
          {"failing_share_b", share(report.tiles_b)}};
}

Json copy_times_json(const cuda::CopyTimes& times) {
  return {{"threads", times.threads},
          {"waiting", times.waiting},
          {"copying", times.copying},
          {"queueing", times.queueing}};
}

Json seconds_json(const OffloadSeconds& seconds) {
  return {{"preparation", seconds.preparation},
          {"load_waits", seconds.load_waits},
          {"launches", seconds.launches},
          {"result_waits", seconds.result_waits},
          {"end", seconds.end},
          {"uploads", copy_times_json(seconds.uploads)},
          {"downloads", copy_times_json(seconds.downloads)}};
}

Json offload_json(const std::optional<OffloadReport>& offload) {
  if (!offload) return {};
  return {{"devices", offload->devices},
          {"products", offload->products},
          {"inner_parts", offload->inner_parts},
          {"uploaded_bytes", offload->uploaded_bytes},
          {"downloaded_bytes", offload->downloaded_bytes},
          {"device_bytes", offload->device_bytes},
          {"host_elements", offload->host_elements},
          {"seconds", seconds_json(offload->seconds)},
          {"host_reason", offload->host_reason.empty() ? Json() : Json(offload->host_reason)}};
}

}  // namespace

std::string multiplied_by(const Report& report) {
  const Plan* plan = report.executed_plan();
  if (plan == nullptr) return {};
  for (std::size_t index = 0; index < plan->candidates.size(); ++index)
    if (report.items[index] != 0) return plan->candidates[index].name();
  return {};
}

std::string describe_report(const Report& report) {
  Json json = json_document("kintsugi.report", 2);
  json["engine"] = report.plan == nullptr ? Json() : Json(report.executed_plan()->engine->name());
  json["matrix_unit"] = report.plan == nullptr ? Json() : matrix_unit_json(report.executed_plan()->unit);
  json["candidates"] = candidates_json(report);
  json["items_scaled"] = report.items_scaled;
  json["items_with_special_values"] = report.items_with_special_values;
  json["recomputed_elements"] = report.recomputed_elements;
  json["items_unreachable"] = report.items_unreachable;
  json["largest_dynamic_range_a"] = report.ranges_known ? Json(report.dynamic_range_a) : Json();
  json["largest_dynamic_range_b"] = report.ranges_known ? Json(report.dynamic_range_b) : Json();
  json["blocking"] = {{"m", report.blocking.m}, {"n", report.blocking.n}};
  json["workspace_bytes"] = report.workspace_bytes;
  json["adapted"] = adapted_json(report.adapted);
  json["tiles"] = tiles_json(report);
  json["error_free"] = ozaki1_json(report.ozaki1);
  json["offload"] = offload_json(report.offload);
  return text_of(json);
}

}  // namespace kintsugi::core
