#include <exception>
#include <optional>

#include "answer.hpp"
#include "core/settings.hpp"
#include "core/sites/site.hpp"

namespace kintsugi::cublas {

namespace {

class GroupsAnswer {
 public:
  GroupsAnswer(const Symbol& symbol, Handle handle, std::vector<ProductCall>& groups,
               const ForwardGroups& forward)
      : symbol_(symbol), origin_(handle), groups_(groups), forward_(forward) {}

  int run() {
    if (!groups_[0].is_supported) return forward_unsupported();
    if (const char* reason = reason_for_all()) return forward_all(reason);
    std::size_t emulated = 0;
    try {
      for (const ProductCall& group : groups_) {
        choices_.push_back(choice_of(group));
        if (choices_.back().emulates()) ++emulated;
      }
    } catch (const std::exception&) {  // No memory; nothing is enqueued yet.
      return forward_(0, groups_.size());
    }
    if (emulated == 0) {
      for (std::size_t i = 0; i < groups_.size(); ++i) note(symbol_, groups_[i], "", choices_[i].why);
      return forward_(0, groups_.size());
    }
    return run_choices();
  }

 private:
  // Decision on a group.
  struct Choice {
    std::optional<DecisionPointer> decision = {};  // set if the group is emulated
    std::string why = {};                          // why cuBLAS multiplies, else

    bool emulates() const { return decision.has_value(); }
  };

  // Returns the reason for which cuBLAS must answer the whole call; nullptr: there is none.
  const char* reason_for_all() {
    if (settings().is_malformed()) return settings().malformed.c_str();
    for (const ProductCall& group : groups_)
      if (const char* reason = reason_to_forward(group); reason != nullptr && !is_empty(group)) return reason;
    if (settings().policy == Policy::native && groups_[0].site == nullptr)
      return "policy native forwards every call";
    if (const char* reason = read_state(origin_, state_)) return reason;
    if (state_.pointer_mode != KINTSUGI_SCALARS_ON_HOST) return "scalars of groups in device memory";
    return origin_.reason_in_arithmetic(groups_[0].type);
  }

  Choice choice_of(const ProductCall& group) const {
    if (const char* reason = reason_to_forward(group)) return {.why = reason};
    DecisionPointer decision = decide(group, state_);
    note_decision(symbol_.name(), *decision);
    if (!decision->emulates) return {.why = decision->why};
    return {.decision = std::move(decision)};
  }

  // Enqueues emulated groups one by one. The groups between two emulated groups go to cuBLAS in one call.
  int run_choices() const {
    std::size_t first = 0;  // the first group that is not enqueued yet
    for (std::size_t i = 0; i <= groups_.size(); ++i) {
      if (i < groups_.size() && !choices_[i].emulates()) {
        note(symbol_, groups_[i], "", choices_[i].why);
        continue;
      }
      if (const int status = first < i ? forward_(first, i - first) : success; status != success)
        return status;
      if (i == groups_.size()) break;
      if (const int status = run_emulated(i); status != success) return status;
      first = i + 1;
    }
    return success;
  }

  int run_emulated(std::size_t i) const try {
    const Decision& decision = **choices_[i].decision;
    CallSample sample(symbol_.name(), groups_[i], state_.stream);
    const std::string failure = emulate(decision, groups_[i], state_, sample.handle());
    if (failure.empty()) {
      sample.note_execution();
      note(symbol_, groups_[i], decision.candidates, decision.why);
      return success;
    }
    note_failure(symbol_.name(), failure);
    note(symbol_, groups_[i], "", failure, true);
    return forward_(i, 1);
  } catch (const std::exception&) {  // No memory; C is not written yet.
    return forward_(i, 1);
  }

  int forward_unsupported() const noexcept try {
    return forward_all(records_calls() ? reason_of(groups_[0].unsupported) : "");
  } catch (const std::exception&) {  // No memory for the reason.
    return forward_(0, groups_.size());
  }

  int forward_all(std::string_view why) const {
    for (const ProductCall& group : groups_) note(symbol_, group, "", why);
    return forward_(0, groups_.size());
  }

  const Symbol& symbol_;
  const HandleOrigin origin_;
  std::vector<ProductCall>& groups_;
  const ForwardGroups& forward_;
  CallState state_;
  std::vector<Choice> choices_;
};

}  // namespace

int answer_groups(const Invocation& invocation, Handle handle, std::vector<ProductCall>& groups,
                  const ForwardGroups& forward) {
  const CallUnderWay under_way;
  const Site* const site = site_of(invocation.return_address, take_announced_site());
  for (ProductCall& group : groups) group.site = site;
  if (site != nullptr && site->rule.is_native() && !records_calls()) return forward(0, groups.size());
  return GroupsAnswer(invocation.symbol, handle, groups, forward).run();
}

}  // namespace kintsugi::cublas
