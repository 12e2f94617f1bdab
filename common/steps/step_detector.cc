#include "common/steps/step_detector.h"

#include <algorithm>

namespace mets::steps {
namespace {

Bytes Distance(Bytes a, Bytes b) { return a < b ? b - a : a - b; }

// How late an op may be.
uint32_t Late(uint32_t length) { return LengthSlack(length) + 2; }

}  // namespace

StepPoint StepDetector::Observe(uint64_t op, Bytes live) {
  OpHistory& history = Note(op, live);
  StepPoint point;
  if (following_.has_value() && !Continue(op, history, &point)) Lose();
  if (!following_.has_value()) {
    since_lost_.Add(live);
    Stretch step;
    uint32_t repeats;
    if (Search(&history, &step, &repeats)) Follow(op, step, repeats, &point);
  }
  if (following_.has_value()) {
    point.signature = following_->signature;
    point.length = following_->step.length;
    point.position = following_->position;
  }
  point.steps = steps_;
  return point;
}

OpHistory& StepDetector::Note(uint64_t op, Bytes live) {
  now_.prefix.Add(op);
  ++now_.at;
  now_.churn += Distance(live, now_.live);
  now_.live = live;
  OpHistory& history = HistoryOf(op);
  history.Add(now_);
  return history;
}

OpHistory& StepDetector::HistoryOf(uint64_t op) {
  const auto it = index_.find(op);
  if (it != index_.end()) return histories_[it->second];
  if (index_.size() >= kMostSignatures) Forget();
  uint32_t index = static_cast<uint32_t>(histories_.size());
  if (unused_.empty()) {
    histories_.emplace_back();
  } else {
    index = unused_.back();
    unused_.pop_back();
    histories_[index] = OpHistory();
  }
  index_.emplace(op, index);
  return histories_[index];
}

void StepDetector::Forget() {
  const auto old = [this](const auto& item) {
    return histories_[item.second].last().at + kMostOps < now_.at;
  };
  const auto olds = std::count_if(index_.begin(), index_.end(), old);
  const bool all = static_cast<size_t>(olds) < kMostSignatures / 2;
  absl::erase_if(index_, [&](const auto& item) {
    if (!all && !old(item)) return false;
    unused_.push_back(item.second);
    return true;
  });
}

bool StepDetector::Search(OpHistory* history, Stretch* step,
                          uint32_t* repeats) {
  for (uint32_t apart = 1; apart <= OpHistory::kMostApart; ++apart) {
    const uint64_t length = history->Length(apart);
    if (length == 0 || !known_.KnowsLength(length)) continue;
    *step = history->StretchOf(apart);
    const KnownStep* known = known_.Find(*step);
    if (known == nullptr || !history->EndsAsItBegan(apart)) continue;
    *repeats = 1;
    if (KnownSteps::RepeatsNeeded(*known, now_.at, since_lost_) == 1 &&
        length >= kFewestOps) {
      return true;
    }
  }
  history->Compare(epoch_, kMostOps);
  *repeats = history->repeats();
  if (*repeats < 2) return false;
  *step = history->StretchOf(history->apart());
  uint32_t needed = 2;
  if (KnownStep* known = known_.Find(*step)) {
    if (*repeats == 2 && history->just_repeated()) {
      KnownSteps::NoteRun(known, now_.at);
    }
    needed = KnownSteps::RepeatsNeeded(*known, now_.at, since_lost_);
  }
  return *repeats >= needed && uint64_t{*repeats} * step->length >= kFewestOps;
}

void StepDetector::Follow(uint64_t op, const Stretch& step, uint32_t repeats,
                          StepPoint* point) {
  const KnownStep& known = *known_.Found(step, now_.at, since_lost_);
  ++epoch_;
  Following& f = following_.emplace();
  f.signature = known.signature;
  f.step = known.stretch;
  f.anchor = op;
  f.anchor_at = now_.at;
  f.repeats = repeats;
  f.rotate = known.first_op;
  f.rotate_live = known.first_live;
  steps_ += repeats;
  Begin(0, point);
  if (RotatesAt(op)) Rotate(op, point);
}

void StepDetector::Lose() {
  const Following& f = *following_;
  known_.Lost(f.signature, now_.at, f.offset == 0 ? f.anchor : 0,
              f.now.first_live, f.repeats, f.live);
  ++epoch_;
  since_lost_ = LiveRange();
  following_.reset();
}

void StepDetector::Begin(uint32_t position, StepPoint* point) {
  Following& f = *following_;
  f.position = position;
  f.now = Repetition();
  f.now.first_live = now_.live;
  f.now.live.Add(now_.live);
  point->boundary = true;
}

bool StepDetector::Supports(const OpHistory& history) const {
  const Stretch& step = following_->step;
  for (uint32_t apart = 1; apart <= OpHistory::kMostApart; ++apart) {
    const uint64_t length = history.Length(apart);
    if (length == 0) return false;
    if (!NearlyAsLong(length, step.length)) continue;
    if (NearlyEqual(history.StretchOf(apart), step)) return true;
  }
  return false;
}

void StepDetector::NoteSupport(uint64_t op) {
  Following& f = *following_;
  Repetition& now = f.now;
  ++now.supporters;
  if (now_.live < now.least.live) now.least = {op, f.position, now_.live};
  if (now.first.op == 0 && op != f.anchor) {
    now.first = {op, f.position, now_.live};
  }
}

bool StepDetector::Anchored(uint64_t op) const {
  const Following& f = *following_;
  if (op != f.anchor) return false;
  const uint64_t since = now_.at - f.anchor_at;
  return since + Late(f.step.length) >= f.step.length;
}

bool StepDetector::Continue(uint64_t op, const OpHistory& history,
                            StepPoint* point) {
  Following& f = *following_;
  ++f.position;
  f.live.Add(now_.live);
  f.now.live.Add(now_.live);
  const bool supports = Supports(history);
  if (supports) {
    NoteSupport(op);
    if (RotatesAt(op)) {
      Rotate(op, point);
      return true;
    }
  }
  const bool anchored = supports && Anchored(op);
  if (anchored) {
    f.anchor_at = now_.at;
    if (f.offset > 0) f.position = f.offset;
  }
  const bool counted = f.offset > 0 && f.position >= f.step.length;
  if ((anchored && f.offset == 0) || counted) {
    ChooseRotation();
    if (counted && supports) {  // An op at the boundary serves better.
      f.anchor = op;
      f.anchor_at = now_.at;
      f.offset = 0;
    }
    ++f.repeats;
    ++steps_;
    Begin(0, point);
    point->whole = true;
    return true;
  }
  if (now_.at - f.anchor_at < f.step.length + Late(f.step.length)) return true;
  return Reanchor(point);
}

bool StepDetector::Reanchor(StepPoint* point) {
  Following& f = *following_;
  const Place place = f.now.least.op == f.anchor ? f.now.first : f.now.least;
  if (place.op == 0 || f.now.supporters < f.supporters / 2) return false;
  f.anchor = place.op;
  f.anchor_at = now_.at - (f.position - place.position);
  f.offset = place.position % f.step.length;
  f.rotate = 0;
  f.best = 0;
  if (f.position >= f.step.length) {
    f.supporters = f.now.supporters;
    ++f.repeats;
    ++steps_;
    Begin(f.position - f.step.length, point);
  }
  return true;
}

void StepDetector::ChooseRotation() {
  Following& f = *following_;
  const Repetition& now = f.now;
  f.supporters = now.supporters;
  f.rotate = 0;
  const Bytes range = now.live.most - now.live.least;
  const bool better = now.least.op != 0 && now.least.op != f.anchor &&
                      f.offset == 0 &&
                      (now.first_live - now.least.live) * 16 > range;
  // The first time at once, later only when it stays so.
  if (better && (!f.measured || f.best == now.least.op)) {
    f.rotate = now.least.op;
    f.rotate_live = now.least.live;
  }
  f.best = better ? now.least.op : 0;
  f.measured = true;
}

bool StepDetector::RotatesAt(uint64_t op) const {
  const Following& f = *following_;
  if (op != f.rotate) return false;
  const Bytes range = f.live.most - f.live.least;
  return Distance(now_.live, f.rotate_live) * 16 <=
         std::max(range, f.rotate_live);
}

void StepDetector::Rotate(uint64_t op, StepPoint* point) {
  Following& f = *following_;
  f.anchor = op;
  f.anchor_at = now_.at;
  f.offset = 0;
  f.rotate = 0;
  f.best = 0;
  f.measured = true;
  Begin(0, point);
}

}  // namespace mets::steps
