// Goals of action clients and action servers (C-30): acceptance, feedback and result.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "scheduler.hpp"

namespace wattwire {

// Copies of requests. Later goals reuse their memory.
class GoalCopies {
 public:
  struct Copy {
    std::string data;
    Record record;
    bool is_record = false;
    Bytes payload() const { return is_record ? Bytes(record) : Bytes(data); }
  };
  struct Release {
    GoalCopies* copies;
    void operator()(Copy* copy) const { copies->put_back(copy); }
  };
  using Owner = std::unique_ptr<Copy, Release>;

  Owner make(Bytes request) {
    Owner copy(take(), Release{this});
    copy->is_record = request.record != nullptr;
    if (copy->is_record) copy->record = *request.record;
    if (!copy->is_record) copy->data.assign(request.view());
    return copy;
  }

 private:
  Copy* take() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) {
      all_.push_back(std::make_unique<Copy>());
      free_.reserve(all_.size());
      return all_.back().get();
    }
    Copy* copy = free_.back();
    free_.pop_back();
    return copy;
  }
  void put_back(Copy* copy) {
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(copy);
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Copy>> all_;
  std::vector<Copy*> free_;
};

// A goal at the action server, with a copy of its request.
struct Goal {
  uint64_t seq;
  int64_t begin_ns, feedback_ns;
  uint8_t flags;
  bool counted;  // false for a probe or an unreadable sequence
  GoalCopies::Owner copy;

  Bytes payload() const { return copy->payload(); }
};

class Actions : public Scheduler {
 public:
  Actions(const Spec& spec, Dialogue* dialogue, int64_t process_start_ns, std::string out)
      : Scheduler(spec, dialogue, process_start_ns, std::move(out)),
        feedback_count_(spec.integer("action.feedback")) {}

  int64_t feedback_count() const { return feedback_count_; }

  // --- action client -----------------------------------------------------------------------

  void accepted(Slot* slot) {
    int64_t end = now_ns();
    Lock lock(mutex_);
    if (!slot->open || slot->accepted) return;
    slot->accepted = true;
    record(*slot, end, kGoal, 0);
  }

  // Records a feedback; first statement of the callback. `slot` identifies the goal, because a
  // short payload or a literal carries no sequence.
  void feedback(Bytes data, const Slot* slot = nullptr) {
    int64_t now = now_ns();
    Lock lock(mutex_);
    Checked arrival = payload_.check(data);
    if (slot != nullptr && !carries_seq()) arrival.seq = slot->seq;
    foreign_ += arrival.verdict == Verdict::kForeign;
    corrupt_ += arrival.verdict == Verdict::kCorrupt;
    if (arrival.verdict != Verdict::kForeign && arrival.seq &&
        (*arrival.seq & kCounterMask) != kProbe)
      record(*arrival.seq, arrival.begin_ns, now, data.size, kFeedback, flag(arrival.verdict));
  }

  // --- action server -----------------------------------------------------------------------

  std::optional<Goal> goal(Bytes data) {
    int64_t now = now_ns();
    Lock lock(mutex_);
    auto arrival = arrive(data, now);
    if (!arrival || data.is_unreadable()) return std::nullopt;
    return Goal{arrival->seq,      now, kUnknownNs, arrival->flags, arrival->counted,
                copies_.make(data)};
  }
  // Records that the acceptance was handed over.
  void accept(const Goal& goal) { record(goal, goal.begin_ns, goal.payload().size, kAccept); }
  // Returns the stamped feedback buffer; the next statement must publish it.
  Bytes feedback_begin(Goal& goal) {
    goal.feedback_ns = now_ns();
    return payload_.stamp(goal.seq, goal.feedback_ns);
  }
  void feedback_sent(const Goal& goal) {
    record(goal, goal.feedback_ns, payload_.length, kFeedback);
  }
  Bytes result(const Goal& goal) const { return replies_.reply_to(goal.payload()); }
  // Records that the result was handed over.
  void finish_goal(const Goal& goal) { record(goal, goal.begin_ns, goal.payload().size, kGoal); }

 private:
  using Core::record;
  void record(const Goal& goal, int64_t begin, size_t bytes, Kind kind) {
    int64_t end = now_ns();
    if (goal.counted) record(goal.seq, begin, end, bytes, kind, goal.flags);
  }

  const int64_t feedback_count_;
  GoalCopies copies_;
};

}  // namespace wattwire
