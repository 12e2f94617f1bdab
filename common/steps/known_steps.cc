#include "common/steps/known_steps.h"

namespace mets::steps {

KnownStep* KnownSteps::Find(const Stretch& stretch) {
  for (KnownStep& step : steps_) {
    if (NearlyEqual(step.stretch, stretch)) return &step;
  }
  return nullptr;
}

uint32_t KnownSteps::RepeatsNeeded(const KnownStep& step, uint64_t now,
                                   const LiveRange& present) {
  LiveRange seen = step.seen;
  seen.Add(present);
  const Bytes range = seen.most - seen.least;
  const bool spans = !range.is_zero() &&
                     step.own.least <= seen.least + Bytes(range.count() / 8) &&
                     step.own.most >= seen.most - Bytes(range.count() / 2);
  if (step.longest >= kLasting && spans) return 1;
  if (!step.regular && step.losses < kDisturbances) return 1;
  if (step.outer == 0 && step.runs >= kPatience) return 1;
  if (step.outer > 0 && now - step.outer_lost > 2 * uint64_t{step.outer}) {
    return 2;
  }
  return step.longest + step.longest / 4 + 1;
}

void KnownSteps::NoteRun(KnownStep* step, uint64_t now) {
  if (now - step->last_run > 2 * uint64_t{step->stretch.length}) ++step->runs;
  step->last_run = now;
}

KnownStep* KnownSteps::Found(const Stretch& stretch, uint64_t now,
                             const LiveRange& since_lost) {
  for (KnownStep& step : steps_) {
    step.seen.Add(since_lost);
    if (step.stretch.length + LengthSlack(step.stretch.length) <
        stretch.length) {
      step.outer = std::max(step.outer, stretch.length);
    }
  }
  KnownStep* found = Find(stretch);
  if (found == nullptr) {
    if (steps_.size() >= kMost) {
      steps_.erase(std::min_element(steps_.begin(), steps_.end(),
                                    [](const KnownStep& a, const KnownStep& b) {
                                      return a.last_found < b.last_found;
                                    }));
    }
    found = &steps_.emplace_back();
    found->signature = stretch.content.Hash();
    found->stretch = stretch;
  }
  found->last_found = now;
  return found;
}

void KnownSteps::Lost(uint64_t signature, uint64_t now, uint64_t first_op,
                      Bytes first_live, uint32_t repeats,
                      const LiveRange& own) {
  uint32_t length = 0;
  for (KnownStep& step : steps_) {
    step.seen.Add(own);
    if (step.signature != signature) continue;
    length = step.stretch.length;
    step.own.Add(own);
    step.first_op = first_op;
    step.first_live = first_live;
    const uint32_t apart =
        std::max(step.last, repeats) - std::min(step.last, repeats);
    step.regular = step.losses > 0 && apart <= 2 + repeats / 8;
    ++step.losses;
    step.last = repeats;
    step.longest = std::max(step.longest, repeats);
    step.last_found = step.last_run = now;
  }
  for (KnownStep& step : steps_) {
    if (step.stretch.length < length) step.outer_lost = now;
  }
}

}  // namespace mets::steps
