#include "tests/daemon/core/fake_sessions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/policy/registry.h"

namespace mets::core {
namespace {

// For comparison; without identifiers that may be missing.
std::string Text(const KeptState& kept) {
  std::string text;
  for (const auto& [id, s] : kept.sessions) {
    absl::StrAppend(&text, "session ", id.value(), " of ", s.domain.value(),
                    " ", s.job, " ", s.limit.count(), " ", s.guarantee.count(),
                    " ", s.priority, " ", s.weight, " ", s.expected, " ",
                    s.orphan[0].count(), "\n");
  }
  for (const auto& [id, c] : kept.chunks) {
    absl::StrAppend(&text, "chunk ", id.value(), " ", c.size_class, " of ",
                    c.domain.value(), " ", c.holder.value(), " ", c.shared,
                    "\n");
  }
  for (const auto& [id, e] : kept.extents) {
    absl::StrAppend(&text, "extent ", id.value(), " of ", e.domain.value(), " ",
                    e.size.count(), "\n");
  }
  for (const auto& [id, s] : kept.slots) {
    absl::StrAppend(&text, "slot ", id.value(), " of ", s.session.value());
    for (const SlotPiece& piece : s.slot.pieces) {
      absl::StrAppend(&text, " ", piece.extent.value(), " ",
                      piece.offset.count(), " ", piece.size.count());
    }
    absl::StrAppend(&text, "\n");
  }
  for (const auto& [key, s] : kept.shares) {
    absl::StrAppend(&text, "share ", s.id.value(), " ", s.epoch.value(), " of ",
                    s.domain.value(), " ", s.name, " ", s.checksum, " ",
                    s.bytes.count(), " ", s.size.count(), " ", s.chunks.size(),
                    " payer ", s.payer.value());
    for (SessionId holder : s.holders) {
      absl::StrAppend(&text, " ", holder.value());
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace

Bytes FakeSession::held() const {
  Bytes sum;
  for (const ChunkRef& chunk : cache) sum += chunk.size;
  for (const auto& [id, buffer] : buffers) {
    for (const ChunkRef& chunk : buffer.chunks) sum += chunk.size;
    sum += buffer.orphan;
  }
  for (const auto& [request, wish] : publishing) sum += wish.buffer.size;
  return sum;
}

CoreConfig FakeCluster::Config(Bytes pool, Bytes swap) {
  CoreConfig config;
  config.epoch = Epoch(1);
  config.devices.push_back({DeviceId(1),
                            "host0",
                            "host",
                            pool,
                            {KiB(64), KiB(256), MiB(1), MiB(4), MiB(16)}});
  config.swap_limit = swap;
  config.extent_size = GiB(1);
  config.changes = true;
  return config;
}

FakeCluster::FakeCluster(CoreConfig config, std::string policy)
    : config_(config),
      policy_(std::move(policy)),
      core_(std::make_unique<Core>(config, *policy::MakePolicy(policy_))) {
  Step(Tick());
}

JobStatus FakeCluster::job(const std::string& name) {
  for (const JobStatus& job : core_->GetStatus().jobs) {
    if (job.name == name) return job;
  }
  return JobStatus();
}

Bytes FakeCluster::created() const {
  Bytes sum;
  for (const auto& [id, chunk] : chunks_) sum += chunk.size;
  return sum;
}

FakeSession& FakeCluster::Open(const std::string& job, const Wish& wish) {
  auto session = std::make_unique<FakeSession>();
  FakeSession& s = *session;
  s.id = SessionId(++last_session_);
  s.domain = DomainId(wish.domain);
  s.job = job;
  s.gated = wish.gated;
  s.device = wish.device;
  sessions_[s.id] = std::move(session);
  SessionOpened opened;
  opened.session = s.id;
  opened.domain = s.domain;
  opened.job = job;
  opened.limit = wish.limit;
  opened.guarantee = wish.guarantee;
  opened.priority = wish.priority;
  Step(opened);
  AttachDevice attach;
  attach.session = s.id;
  attach.device = s.device;
  attach.ops_seen = !s.gated;
  Send(s, attach);
  Pump();
  return s;
}

void FakeCluster::Kill(FakeSession& s) {
  if (!s.alive) return;
  s.alive = s.connected = false;
  s.to_core.clear();
  s.inbox.clear();
  s.buffers.clear();
  s.cache.clear();
  s.known.clear();
  s.extents.clear();
  s.shares.clear();
  s.publishing.clear();
  s.attaching.clear();
  for (auto& [id, chunk] : chunks_) {
    if (chunk.holder == s.id) chunk.holder = SessionId();
    chunk.sharers.erase(s.id);
  }
  Step(SessionEnded{s.id});
}

void FakeCluster::Disconnect(FakeSession& s) {
  s.connected = false;
  s.to_core.clear();
  s.inbox.clear();
  s.requests.clear();
  s.attaching.clear();
  s.overdraft = 0;
  s.plan.reset();
  s.lent.clear();
  s.gate = GateOrder();
  s.waits = false;
}

void FakeCluster::Lose(FakeSession& s) {
  if (!s.connected) return;
  Disconnect(s);
  Step(SessionLost{s.id});
}

void FakeCluster::SucceedCore() {
  for (auto& [id, s] : sessions_) Disconnect(*s);
  for (auto it = chunks_.begin(); it != chunks_.end();) {
    if (kept_.chunks.count(it->first) > 0) {
      ++it;
      continue;
    }
    EXPECT_FALSE(it->second.holder.ok());
    EXPECT_TRUE(it->second.sharers.empty());
    it = chunks_.erase(it);
  }
  for (auto it = extents_.begin(); it != extents_.end();) {
    it =
        kept_.extents.count(it->first) > 0 ? std::next(it) : extents_.erase(it);
  }
  memory_.clear();
  plan_tasks.clear();
  EXPECT_EQ(Text(kept_), Text(core_->GetKept()));
  const OperatorSettings settings = core_->GetStatus().settings;
  core_ = std::make_unique<Core>(config_, *policy::MakePolicy(policy_));
  const absl::Status status = core_->TakeOver(now_, kept_);
  EXPECT_TRUE(status.ok()) << status;
  KeptState taken = core_->GetKept();
  EXPECT_EQ(Text(kept_), Text(taken));
  kept_ = std::move(taken);
  Step(RestoreSettings{settings});
}

void FakeCluster::Resume(FakeSession& s) {
  if (!s.alive || s.connected || s.refused) return;
  s.connected = true;
  Step(SessionResumed{s.id});
  Send(s, AttachDevice{s.id, s.device, !s.gated});
  SendSnapshot(s);
  for (const auto& [request, wish] : s.publishing) Send(s, wish.input);
}

void FakeCluster::SendSnapshot(FakeSession& s) {
  Snapshot snapshot;
  snapshot.session = s.id;
  snapshot.device = s.device;
  for (const ChunkRef& chunk : s.cache) snapshot.chunks.push_back(chunk.id);
  for (const auto& [id, buffer] : s.buffers) {
    for (const ChunkRef& chunk : buffer.chunks) {
      snapshot.chunks.push_back(chunk.id);
    }
    snapshot.orphan += buffer.orphan;
    snapshot.buffers.push_back(Describe(buffer));
  }
  std::set<ChunkId> shared;
  for (const auto& [request, wish] : s.publishing) {
    const auto& chunks = wish.input.chunks;
    snapshot.publishing.insert(snapshot.publishing.end(), chunks.begin(),
                               chunks.end());
  }
  for (const auto& [name, share] : s.shares) {
    snapshot.shares.push_back({share.id, share.epoch, share.size});
    for (const ChunkRef& chunk : share.chunks) shared.insert(chunk.id);
  }
  // What was on its way to a chunk's holder did not arrive.
  std::set<ChunkId> mine(snapshot.chunks.begin(), snapshot.chunks.end());
  mine.insert(snapshot.publishing.begin(), snapshot.publishing.end());
  shared.insert(snapshot.publishing.begin(), snapshot.publishing.end());
  for (auto& [id, chunk] : chunks_) {
    if (chunk.holder == s.id && mine.count(id) == 0) {
      chunk.holder = SessionId();
    }
    if (shared.count(id) == 0) chunk.sharers.erase(s.id);
  }
  snapshot.cached = CachedBytes(s);
  snapshot.totals = s.totals;
  snapshot.last = true;
  s.changed.clear();
  Send(s, snapshot);
}

void FakeCluster::RestartCore(CoreConfig config) {
  std::vector<ExpectSession> records;
  ++epoch_;
  for (auto& [id, s] : sessions_) {
    s->connected = false;
    s->to_core.clear();
    s->inbox.clear();
    s->requests.clear();
    s->overdraft = 0;
    s->tight = false;
    s->plan.reset();
    s->gate = GateOrder();
    s->waits = false;
    if (!s->alive) continue;
    for (auto& [buffer_id, buffer] : s->buffers) {
      for (const ChunkRef& chunk : buffer.chunks) buffer.orphan += chunk.size;
      buffer.chunks.clear();
      buffer.clean = false;
      // The slot's epoch, in its id from now on.
      if ((buffer.slot.id.value() >> 48) == 0) {
        buffer.slot.id = SlotId(buffer.slot.id.value() | (epoch_ - 1) << 48);
      }
    }
    for (auto& [request, wish] : s->publishing) {  // They stay buffers.
      FakeBuffer& buffer = s->buffers[wish.buffer.id] = wish.buffer;
      buffer.orphan = buffer.size;
      buffer.chunks.clear();
      buffer.clean = false;
      buffer.slot.id = SlotId();
    }
    s->publishing.clear();
    s->attaching.clear();
    Bytes shared;
    for (auto& [name, share] : s->shares) {
      share.chunks.clear();
      shared += share.size;
    }
    s->cache.clear();
    s->lent.clear();
    s->known.clear();
    s->extents.clear();
    records.push_back(
        {s->id, s->domain, s->job, {{s->device, s->held() + shared}}, {}});
  }
  chunks_.clear();
  extents_.clear();
  memory_.clear();
  plan_tasks.clear();
  config.epoch = Epoch(epoch_);
  config_ = config;
  const OperatorSettings settings = core_->GetStatus().settings;
  core_ = std::make_unique<Core>(config, *policy::MakePolicy(policy_));
  kept_ = KeptState();
  for (const ExpectSession& record : records) Step(record);
  Step(RestoreSettings{settings});
}

void FakeCluster::Return(FakeSession& old) {
  if (!old.alive || old.connected) return;
  auto node = sessions_.extract(old.id);
  FakeSession& s = *node.mapped();
  const SessionId before = s.id;
  s.id = SessionId(++last_session_);
  node.key() = s.id;
  sessions_.insert(std::move(node));
  s.connected = true;
  for (auto& [key, content] : swap_) {
    if (content.session == before) content.session = s.id;
  }
  SessionOpened opened;
  opened.session = s.id;
  opened.domain = s.domain;
  opened.job = s.job;
  opened.expects_snapshot = true;
  opened.recovers = before;
  Step(opened);
  Send(s, AttachDevice{s.id, s.device, !s.gated});
  SendSnapshot(s);
}

BufferId FakeCluster::Alloc(FakeSession& s, Bytes size, absl::Duration wait,
                            bool overdraft, bool pinned, uint64_t op,
                            bool fewest_chunks) {
  const BufferId id(++s.last_buffer);
  const RequestId request(++s.last_request);
  s.requests[request] = {id, size, overdraft};
  Acquire acquire;
  acquire.session = s.id;
  acquire.request = request;
  acquire.device = s.device;
  if (!size.is_zero()) acquire.ranges = {size};
  acquire.wait = wait;
  acquire.overdraft = overdraft;
  acquire.pinned = pinned;
  acquire.op = op;
  acquire.fewest_chunks = fewest_chunks;
  Send(s, acquire);
  return id;
}

void FakeCluster::Touch(FakeSession& s, BufferId id, bool write) {
  auto it = s.buffers.find(id);
  if (it == s.buffers.end()) return;
  FakeBuffer& buffer = it->second;
  s.changed.insert(id);
  if (!buffer.resident) {
    for (const auto& [request, wanted] : s.requests) {
      if (wanted.buffer == id) return;
    }
    const RequestId request(++s.last_request);
    s.requests[request] = {id, buffer.size, false};
    Acquire acquire;
    acquire.session = s.id;
    acquire.request = request;
    acquire.device = s.device;
    acquire.ranges = {buffer.size};
    acquire.wait = absl::Seconds(60);
    Send(s, acquire);
    return;
  }
  buffer.last_use = now_;
  if (!write) return;
  ++buffer.version;
  buffer.clean = false;
}

void FakeCluster::Free(FakeSession& s, BufferId id, bool cache) {
  auto it = s.buffers.find(id);
  if (it == s.buffers.end()) return;
  for (const auto& [request, wanted] : s.requests) {
    if (wanted.buffer == id) return;  // Is being restored.
  }
  Release release;
  release.session = s.id;
  release.device = s.device;
  release.orphan = it->second.orphan;
  for (const ChunkRef& chunk : it->second.chunks) {
    if (cache) {
      s.cache.push_back(chunk);
    } else {
      release.chunks.push_back(chunk.id);
      chunks_[chunk.id].holder = SessionId();
    }
  }
  s.buffers.erase(it);
  s.changed.insert(id);
  if (!release.chunks.empty() || !release.orphan.is_zero()) Send(s, release);
}

void FakeCluster::Pin(FakeSession& s, BufferId id, bool pinned) {
  auto it = s.buffers.find(id);
  if (it == s.buffers.end() || (pinned && !it->second.resident)) return;
  it->second.pinned = pinned;
  s.changed.insert(id);
}

void FakeCluster::GiveOverdraftBack(FakeSession& s) {
  if (s.overdraft == 0) return;
  --s.overdraft;
  Release release;
  release.session = s.id;
  release.device = s.device;
  release.overdraft = true;
  Send(s, release);
}

void FakeCluster::WaitAtGate(FakeSession& s) {
  if (s.gate.open || s.computes || !s.gate.order.ok()) return;
  s.waits = true;
  s.told_waits = s.gate.order;
  Send(s, TurnWanted{s.id, s.device, s.gate.order});
}

void FakeCluster::EvictByPlan(FakeSession& s, BufferId id, uint32_t logical) {
  auto it = s.buffers.find(id);
  if (it == s.buffers.end() || !s.plan.has_value()) return;
  FakeBuffer& buffer = it->second;
  if (!buffer.resident || buffer.pinned || !buffer.orphan.is_zero()) return;
  for (const PlanOrder::Place& place : s.plan->places) {
    if (place.buffer != logical) continue;
    Bytes size;
    for (const SlotPiece& piece : place.slot.pieces) size += piece.size;
    if (size < buffer.size) return;
    for (auto& [other_id, other] : s.buffers) {
      if (other_id == id || other.slot.id != place.slot.id) continue;
      if (!other.resident) return;  // Its bytes are there.
      other.clean = false;
      s.changed.insert(other_id);
    }
    const bool clean = buffer.clean && buffer.slot.id == place.slot.id;
    if (!clean) {
      Write(place.slot, buffer.size, {s.id, buffer.id, buffer.version});
      s.totals.evicted += buffer.size;
    }
    buffer.resident = buffer.clean = false;
    buffer.slot = place.slot;
    s.cache.insert(s.cache.end(), buffer.chunks.begin(), buffer.chunks.end());
    buffer.chunks.clear();
    s.changed.insert(id);
    return;
  }
}

void FakeCluster::RestoreByPlan(FakeSession& s, BufferId id) {
  auto it = s.buffers.find(id);
  if (it == s.buffers.end() || it->second.resident) return;
  FakeBuffer& buffer = it->second;
  for (const auto& [request, wanted] : s.requests) {
    if (wanted.buffer == id) return;  // Is being restored.
  }
  std::vector<ChunkRef> taken, left;
  Bytes missing = buffer.size;
  for (const ChunkRef& chunk : s.cache) {
    const bool takes = chunk.size <= missing;
    (takes ? taken : left).push_back(chunk);
    if (takes) missing -= chunk.size;
  }
  if (!missing.is_zero()) return;
  CheckRead(buffer.slot, buffer.size, {s.id, buffer.id, buffer.version});
  s.cache = std::move(left);
  buffer.chunks = std::move(taken);
  buffer.resident = true;
  s.totals.restored += buffer.size;
  buffer.clean = (buffer.slot.id.value() >> 48) == 0;
  buffer.last_use = now_;
  s.changed.insert(id);
}

void FakeCluster::AnswerPlan(absl::StatusOr<steps::StepPlan> plan) {
  const PlanTask task = std::move(plan_tasks.front());
  plan_tasks.pop_front();
  Step(PlanMade{task.session, task.device, task.number, std::move(plan)});
}

BufferReport FakeCluster::Describe(const FakeBuffer& buffer) const {
  BufferReport report;
  report.id = buffer.id;
  report.size = buffer.size;
  report.state =
      buffer.resident ? BufferState::kResident : BufferState::kSwapped;
  report.mobility = buffer.mobility;
  report.clean = buffer.clean;
  report.pinned = buffer.pinned;
  report.idle = now_ - buffer.last_use;
  const bool old = (buffer.slot.id.value() >> 48) != 0;
  if (!old && (!buffer.resident || buffer.clean)) {
    report.slot = buffer.slot.id;
  }
  report.orphan = buffer.orphan;
  report.logical = buffer.logical;
  return report;
}

Bytes FakeCluster::CachedBytes(const FakeSession& s) const {
  Bytes sum;
  for (const ChunkRef& chunk : s.cache) sum += chunk.size;
  return sum;
}

void FakeCluster::Report(FakeSession& s) {
  BufferChanges changes;
  changes.session = s.id;
  changes.device = s.device;
  for (BufferId id : s.changed) {
    auto it = s.buffers.find(id);
    if (it != s.buffers.end()) {
      changes.buffers.push_back(Describe(it->second));
      continue;
    }
    BufferReport freed;
    freed.id = id;
    freed.freed = true;
    changes.buffers.push_back(freed);
  }
  for (const auto& [id, buffer] : s.buffers) {
    if (buffer.pinned) changes.pinned += buffer.size;
  }
  s.changed.clear();
  changes.cached = CachedBytes(s);
  changes.totals = s.totals;
  Send(s, changes);
}

void FakeCluster::Send(FakeSession& s, Input input) {
  if (s.connected && !s.refused) s.to_core.push_back(std::move(input));
}

}  // namespace mets::core
