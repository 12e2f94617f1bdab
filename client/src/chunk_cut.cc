#include "client/src/chunk_cut.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace mets::client {
namespace {

// What leaves is gone so much later, as a part of the step: copies wait for one
// another.
constexpr int kLinger = 16;
// More of the smaller classes than the step needs: what is not in it has chunks
// as well.
constexpr int64_t kSpare = 2;
constexpr int64_t kSparePart = 8;

// Chunks of one class that are needed at each op of a step.
class Need {
 public:
  explicit Need(size_t ops) : change_(ops + 1) {}

  // From op `from` on, up to `to`, which is excluded; around the step's end
  // when that comes first.
  void Add(size_t from, size_t to, int64_t count) {
    if (from > to) {
      Add(from, change_.size() - 1, count);
      from = 0;
    }
    change_[from] += count;
    change_[to] -= count;
  }

  int64_t most() const {
    int64_t need = 0, most = 0;
    for (int64_t change : change_) most = std::max(most, need += change);
    return most;
  }

 private:
  std::vector<int64_t> change_;
};

// The ops in which a buffer's memory is allocated and freed, if any do.
struct Life {
  std::optional<size_t> begin, end;
};

std::vector<Life> LivesOf(const steps::StepProgram& program) {
  std::vector<Life> lives(program.buffers.size());
  for (size_t op = 0; op < program.ops.size(); ++op) {
    for (const steps::Access& access : program.ops[op].accesses) {
      if (access.kind != steps::AccessKind::kNew) continue;
      lives[access.buffer].begin = op;
    }
    for (uint32_t buffer : program.ops[op].frees) lives[buffer].end = op;
  }
  return lives;
}

void AddLife(const Life& life, bool persistent, size_t ops, int64_t count,
             Need* need) {
  if (!life.begin.has_value() || !life.end.has_value()) {
    need->Add(0, ops, count);
  } else if (persistent && *life.begin <= *life.end) {  // Replaced.
    need->Add(0, ops, count);
    need->Add(*life.begin, *life.end + 1, count);
  } else {
    need->Add(*life.begin, *life.end + 1, count);
  }
}

// The first op of which the memory of what leaves after `op` is free.
size_t GoneAt(const steps::StepProgram& program, size_t op) {
  const size_t ops = program.ops.size();
  const absl::Duration left = program.ops[op].start + program.ops[op].busy;
  const absl::Duration gone = left + program.duration / kLinger;
  for (size_t i = op + 1; i < op + ops; ++i) {
    const absl::Duration around =
        i < ops ? absl::ZeroDuration() : program.duration;
    if (program.ops[i % ops].start + around >= gone) return i % ops;
  }
  return op;
}

Need NeedOf(const steps::StepProgram& program,
            const std::vector<steps::Absence>& absences, Bytes smallest,
            Bytes size, Bytes larger) {
  const size_t ops = program.ops.size();
  const std::vector<Life> lives = LivesOf(program);
  const auto pieces = [&](uint32_t buffer) {
    const Bytes range = program.buffers[buffer].size.RoundUpTo(smallest);
    return range.count() % larger.count() / size.count();
  };
  Need need(ops);
  for (uint32_t b = 0; b < lives.size(); ++b) {
    AddLife(lives[b], program.buffers[b].persistent, ops, pieces(b), &need);
  }
  for (const steps::Absence& absence : absences) {
    const std::optional<size_t>& end = lives[absence.buffer].end;
    const size_t back =
        absence.returns || !end.has_value() ? absence.restore_at : *end + 1;
    const size_t away = (back + ops - absence.evict_after) % ops;
    const size_t gone = GoneAt(program, absence.evict_after);
    const size_t lingers = (gone + ops - absence.evict_after) % ops;
    if (lingers < away) need.Add(gone, back, -pieces(absence.buffer));
  }
  return need;
}

// Moves chunks that fill `size` from `from` to `to`; false changes nothing.
bool Move(Bytes size, ChunkCounts* from, ChunkCounts* to) {
  const ChunkCounts smaller(from->begin(), from->lower_bound(size.count()));
  ChunkCounts moved;
  if (!PlanExact(smaller, size, &moved)) return false;
  for (const auto& [chunk, count] : moved) {
    (*from)[chunk] -= count;
    (*to)[chunk] += count;
  }
  return true;
}

// How many more of a size there are than in `other`, by size.
ChunkCounts More(const ChunkCounts& counts, const ChunkCounts& other) {
  ChunkCounts more;
  for (const auto& [size, count] : counts) {
    const auto it = other.find(size);
    const int64_t less = it == other.end() ? 0 : it->second;
    if (count > less) more[size] = count - less;
  }
  return more;
}

}  // namespace

ChunkCounts CutFor(const steps::StepProgram& program,
                   const std::vector<steps::Absence>& absences,
                   const std::vector<Bytes>& classes, Bytes total) {
  ChunkCounts cut;
  Bytes left = total;
  for (size_t c = 0; c + 1 < classes.size(); ++c) {
    const int64_t most =
        NeedOf(program, absences, classes[0], classes[c], classes[c + 1])
            .most();
    const int64_t count =
        std::min(most + most / kSparePart + kSpare, left / classes[c]);
    cut[classes[c].count()] = count;
    left -= count * classes[c];
  }
  if (!classes.empty()) cut[classes.back().count()] = left / classes.back();
  return cut;
}

bool ChunkCut::Helps(const ChunkCounts& held, absl::Time now) {
  if (wanted_.empty() || More(wanted_, held).empty()) return false;
  if (looked_ != absl::InfinitePast()) {
    due_ = std::min<double>(kAtOnce, due_ + (now - looked_) / kPeriod);
  }
  looked_ = now;
  return due_ >= 1;
}

ChunkExchange ChunkCut::Next(const ChunkCounts& held, const ChunkCounts& free) {
  ChunkExchange exchange;
  ChunkCounts lacking = More(wanted_, held);
  ChunkCounts surplus = More(held, wanted_);
  for (auto& [size, count] : surplus) {
    const auto it = free.find(size);
    count = it == free.end() ? 0 : std::min(count, it->second);
  }
  int64_t left = kMost.count();
  for (auto it = lacking.rbegin(); it != lacking.rend(); ++it) {
    auto& [size, count] = *it;
    for (; count > 0 && size <= left; --count, left -= size) {
      if (!Move(Bytes(size), &surplus, &exchange.give)) break;
      ++exchange.take[size];
    }
  }
  for (auto& [size, count] : surplus) {
    for (; count > 0 && size <= left; --count, left -= size) {
      if (!Move(Bytes(size), &lacking, &exchange.take)) break;
      ++exchange.give[size];
    }
  }
  if (!exchange.empty()) due_ -= 1;
  return exchange;
}

}  // namespace mets::client
