// How a SimClient follows orders.
#include <algorithm>
#include <utility>
#include <variant>

#include "daemon/sim/sim_client.h"

namespace mets::sim {
namespace {

constexpr double kReportEvery = 0.02;
constexpr int kMostMoves = 16;  // As in the client (eviction_window.cc).

}  // namespace

void SimClient::Take(const core::SessionAction& action) {
  if (result_.done) return;
  std::visit([this](const auto& a) { On(a); }, action);
}

void SimClient::On(const core::Grant& grant) {
  for (const core::ChunkRef& chunk : grant.chunks) {
    held_ += chunk.size;
    lent_.erase(chunk.id);
  }
  if (ahead_ == grant.request) return GrantedAhead(grant);
  if (request_ != grant.request) {
    idle_.Put(grant.chunks);
    return;
  }
  request_.reset();
  tokens_ += grant.overdraft;
  auto chunk = grant.chunks.begin();
  for (size_t i = 0; i < grant.range_chunks.size(); ++i) {
    Chunks& chunks = buffers_[asked_for_[i]].chunks;
    chunks.insert(chunks.end(), chunk, chunk + grant.range_chunks[i]);
    chunk += grant.range_chunks[i];
  }
  result_.wait += world_.now() - asked_;
  Admit();
}

void SimClient::On(const core::GateOrder& order) {
  gate_.Follow(order);
  const bool quantum = order.open && order.idle > absl::ZeroDuration() &&
                       order.moment != core::GateMoment::kStepEnd;
  if (quantum) ReturnAhead();
}

void SimClient::On(const core::Deny& deny) {
  if (ahead_ == deny.request) DeniedAhead();
  if (request_ != deny.request) return;
  request_.reset();
  Fail(deny.reason);
}

void SimClient::Queue(core::SessionAction order) {
  orders_.push_back(std::move(order));
  FollowNext();
}

void SimClient::FollowNext() {
  while (!eviction_.has_value() && !orders_.empty()) {
    const core::SessionAction order = std::move(orders_.front());
    orders_.pop_front();
    std::visit([this](const auto& o) { Follow(o); }, order);
  }
}

void SimClient::Follow(const core::EvictOrder& order) {
  eviction_.emplace();
  eviction_->order = order;
  for (const auto& candidate : order.candidates) {
    eviction_->results.push_back(
        {candidate.buffer, core::Outcome::kSkipped, false, SlotId()});
  }
  GoOn();
}

bool SimClient::Wanted(uint32_t b) const {
  if (!waiting_) return false;
  const auto& accesses = program_.ops[op_].accesses;
  return std::any_of(accesses.begin(), accesses.end(),
                     [b](const auto& access) { return access.buffer == b; });
}

// Begins copies until they reach the target, then answers.
void SimClient::GoOn() {
  Eviction& mine = *eviction_;
  const size_t count = mine.order.candidates.size();
  while (mine.next < 2 * count && mine.running < kMostMoves &&
         mine.given + mine.leaving < mine.order.target) {
    if (mine.next == count && mine.running > 0) break;
    const bool wanted = mine.next >= count;
    const size_t candidate = mine.next++ % count;
    if (TryEvict(candidate, wanted)) ++mine.running;
  }
  if (mine.running > 0) return;
  core::OrderDone done;
  done.session = session_;
  done.order = mine.order.order;
  done.results = std::move(mine.results);
  eviction_.reset();
  Report();
  to_core_(std::move(done));
  FollowNext();
}

bool SimClient::TryEvict(size_t candidate, bool wanted) {
  const auto& named = eviction_->order.candidates[candidate];
  const uint32_t b = static_cast<uint32_t>(named.buffer.value() - 1);
  core::BufferResult& result = eviction_->results[candidate];
  Buffer& buffer = buffers_[b];
  if (result.outcome != core::Outcome::kSkipped || Wanted(b) > wanted) {
    return false;
  }
  if (buffer.phase != Phase::kResident || buffer.pinned) {
    if (buffer.phase == Phase::kNone) result.outcome = core::Outcome::kFreed;
    return false;
  }
  result.clean = !buffer.dirty;
  const Bytes size = TotalSize(buffer.chunks);
  eviction_->leaving += size;
  Leave(b, named.slot.id, [this, b, candidate, size](bool left) {
    --eviction_->running;
    eviction_->leaving -= size;
    core::BufferResult& mine = eviction_->results[candidate];
    if (left) {
      mine.outcome = core::Outcome::kDone;
      mine.slot = buffers_[b].slot;
      eviction_->given += size;
      GiveBack(buffers_[b].chunks, eviction_->order.order);
      buffers_[b].chunks.clear();
    } else if (buffers_[b].freed) {
      mine.outcome = core::Outcome::kFreed;
    }
    GoOn();
  });
  return true;
}

void SimClient::On(const core::Regrant& regrant) {
  for (ChunkId id : regrant.chunks) {
    const auto it = lent_.find(id);
    held_ += it->second.size;
    idle_.Put({it->second});
    lent_.erase(it);
  }
}

void SimClient::Lend() {
  const Chunks chunks = idle_.TakeAny(idle_.bytes());
  for (const core::ChunkRef& chunk : chunks) lent_[chunk.id] = chunk;
  GiveBack(chunks, OrderId(), /*lent=*/true);
}

void SimClient::Follow(const core::TrimOrder& order) {
  GiveBack(idle_.TakeAny(order.target), order.order);
  core::OrderDone done;
  done.session = session_;
  done.order = order.order;
  to_core_(std::move(done));
}

void SimClient::Follow(const core::ForgetOrder& order) {
  for (ChunkId chunk : order.chunks) lent_.erase(chunk);
  to_core_(core::Forgotten{session_, order.order, {}});
}

void SimClient::GiveBack(const Chunks& chunks, OrderId order, bool lent) {
  if (chunks.empty()) return;
  held_ -= TotalSize(chunks);
  core::Release release;
  release.session = session_;
  release.device = device_;
  release.order = order;
  release.lent = lent;
  for (const core::ChunkRef& chunk : chunks) {
    release.chunks.push_back(chunk.id);
  }
  to_core_(std::move(release));
}

void SimClient::GiveTokensBack() {
  for (; tokens_ > 0; --tokens_) {
    core::Release release;
    release.session = session_;
    release.device = device_;
    release.overdraft = true;
    to_core_(std::move(release));
  }
}

void SimClient::Change(uint32_t b) {
  if (!buffers_[b].changed) {
    buffers_[b].changed = true;
    changed_.push_back(b);
  }
  if (reporting_) return;
  reporting_ = true;
  world_.After(kReportEvery, [this] {
    reporting_ = false;
    if (result_.done) return;
    ReportSteps();
    Report();
  });
}

core::BufferReport SimClient::Describe(uint32_t b) {
  Buffer& buffer = buffers_[b];
  buffer.changed = false;
  core::BufferReport report;
  report.id = BufferId(b + 1);
  report.size = buffer.size;
  report.freed = buffer.freed;
  const bool away =
      buffer.phase == Phase::kSwapped || buffer.phase == Phase::kReturning;
  report.state =
      away ? core::BufferState::kSwapped : core::BufferState::kResident;
  // At two reports in a row, as in the client.
  report.pinned =
      std::exchange(buffer.pinned_before, buffer.pinned) && buffer.pinned;
  report.clean = !buffer.dirty;
  report.idle = absl::Seconds(world_.now() - buffer.last_use);
  report.slot = buffer.slot;
  report.logical = steps_.LogicalOf(b);
  return report;
}

void SimClient::ReportSteps() {
  for (core::Input& input : steps_.Report(JobTime())) {
    to_core_(std::move(input));
  }
}

void SimClient::Report() {
  if (std::exchange(reported_version_, steps_.version()) != steps_.version()) {
    for (uint32_t b = 0; b < buffers_.size(); ++b) {
      if (buffers_[b].phase != Phase::kNone) Change(b);
    }
  }
  core::BufferChanges changes;
  changes.session = session_;
  changes.device = device_;
  if (op_ < program_.ops.size()) {
    for (const steps::Access& access : program_.ops[op_].accesses) {
      const Buffer& buffer = buffers_[access.buffer];
      if (!buffer.pinned || !buffer.pinned_before) continue;
      changes.pinned += buffer.size;
      Change(access.buffer);
    }
  }
  for (uint32_t b : changed_) changes.buffers.push_back(Describe(b));
  changed_.clear();
  changes.cached = idle_.bytes();
  changes.totals.evicted = result_.evicted;
  changes.totals.restored = result_.restored;
  to_core_(std::move(changes));
}

}  // namespace mets::sim
