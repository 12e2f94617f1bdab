// How FakeCluster delivers messages, and what its sessions do with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/daemon/core/fake_sessions.h"

namespace mets::core {
namespace {

constexpr Bytes kGranule = KiB(64);

}  // namespace

void FakeCluster::Step(const Input& input) {
  const std::vector<Action> actions = core_->Step(now_, input);
  for (const Change& change : core_->TakeChanges()) kept_.Apply(change);
  for (const Action& action : actions) {
    std::visit([this](const auto& a) { Do(a); }, action);
  }
  for (Event& event : core_->TakeEvents()) {
    EXPECT_FALSE(EventText(event).empty());
    events.push_back(std::move(event));
  }
  const absl::Status status = core_->CheckInvariants();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GT(core_->next_deadline(), now_);
}

void FakeCluster::Do(const SessionAction& action) {
  if (const auto* set = std::get_if<JobLimitSet>(&action)) {
    limits.push_back(*set);
    return;
  }
  const SessionId id = std::visit(
      [](const auto& a) {
        if constexpr (std::is_same_v<std::decay_t<decltype(a)>, JobLimitSet>) {
          return SessionId();
        } else {
          return a.session;
        }
      },
      action);
  auto it = sessions_.find(id);
  if (it == sessions_.end()) return;
  EXPECT_TRUE(it->second->connected) << "a message to a lost session";
  if (const auto* grant = std::get_if<Grant>(&action)) {
    CheckChunkUse(*it->second, grant->chunks);
  } else if (const auto* answer = std::get_if<ShareAnswer>(&action)) {
    CheckShare(*it->second, *answer);
  } else if (const auto* regrant = std::get_if<Regrant>(&action)) {
    std::vector<ChunkRef> chunks;
    for (ChunkId id : regrant->chunks) chunks.push_back({id, chunks_[id].size});
    EXPECT_FALSE(chunks.empty());
    CheckChunkUse(*it->second, chunks);
  } else if (const auto* evict = std::get_if<EvictOrder>(&action)) {
    CheckHeld(*it->second, *evict);
  } else if (const auto* gate = std::get_if<GateOrder>(&action)) {
    it->second->gate_sent = gate->order;
  }
  it->second->inbox.push_back(action);
}

void FakeCluster::Do(const OperatorAction& action) {
  if (const auto* done = std::get_if<CommandDone>(&action)) {
    commands.push_back(*done);
  } else if (const auto* end = std::get_if<EndProcesses>(&action)) {
    ends.push_back(*end);
  } else {
    ended_jobs.push_back(std::get<JobEnded>(action));
  }
}

// Nobody else may hold what is granted, nor anyone of another domain know it.
void FakeCluster::CheckChunkUse(const FakeSession& s,
                                const std::vector<ChunkRef>& granted) {
  for (const ChunkRef& ref : granted) {
    FakeChunk& chunk = chunks_[ref.id];
    EXPECT_TRUE(chunk.ready) << "chunk " << ref.id;
    EXPECT_EQ(chunk.size, ref.size);
    EXPECT_FALSE(chunk.holder.ok()) << "chunk " << ref.id << " of session "
                                    << chunk.holder << " granted to " << s.id;
    EXPECT_TRUE(chunk.sharers.empty()) << "chunk " << ref.id << " is shared";
    EXPECT_TRUE(!chunk.domain.ok() || chunk.domain == s.domain);
    chunk.domain = s.domain;
    chunk.holder = s.id;
  }
}

// Held buffers are named only once it has said that it waits at its gate.
void FakeCluster::CheckHeld(const FakeSession& s, const EvictOrder& order) {
  for (const EvictOrder::Candidate& candidate : order.candidates) {
    const auto it = s.buffers.find(candidate.buffer);
    if (it == s.buffers.end() || it->second.mobility == Mobility::kMovable) {
      continue;
    }
    EXPECT_TRUE(s.gated && s.told_waits.ok() && s.told_waits == s.gate_sent)
        << "held buffer " << candidate.buffer << " of session " << s.id;
  }
}

void FakeCluster::Do(const MemoryAction& action) {
  if (const auto* create = std::get_if<CreateChunk>(&action)) {
    chunks_[create->chunk].size = create->size;
    chunks_[create->chunk].device = create->device;
    for (const DeviceConfig& device : config_.devices) {
      if (device.id != create->device) continue;
      Bytes sum = Orphans(device);
      for (const auto& [id, chunk] : chunks_) {
        if (chunk.device == device.id) sum += chunk.size;
      }
      EXPECT_LE(sum, device.pool) << device.name;
    }
  } else if (const auto* destroy = std::get_if<DestroyChunk>(&action)) {
    for (const auto& [id, s] : sessions_) {
      EXPECT_EQ(s->known.count(destroy->chunk), 0u)
          << "session " << id << " knows destroyed chunk " << destroy->chunk;
    }
    EXPECT_FALSE(chunks_[destroy->chunk].holder.ok());
    EXPECT_TRUE(chunks_[destroy->chunk].sharers.empty());
  }
  memory_.push_back(action);
}

bool FakeCluster::DeliverMemory() {
  if (memory_.empty()) return false;
  const MemoryAction action = memory_.front();
  memory_.pop_front();
  absl::Status status;
  if (const auto* create = std::get_if<CreateChunk>(&action)) {
    if (failing_creations > 0) {
      --failing_creations;
      status = absl::ResourceExhaustedError("no such memory");
      chunks_.erase(create->chunk);
    } else {
      chunks_[create->chunk].ready = true;
    }
    Step(ChunkCreated{create->chunk, status});
  } else if (const auto* destroy = std::get_if<DestroyChunk>(&action)) {
    chunks_.erase(destroy->chunk);
    Step(ChunkDestroyed{destroy->chunk, status});
  } else if (const auto* extent = std::get_if<CreateExtent>(&action)) {
    if (failing_creations > 0) {
      --failing_creations;
      status = absl::ResourceExhaustedError("no such memory");
    } else {
      extents_[extent->extent] = extent->size;
    }
    Step(ExtentCreated{extent->extent, status});
  } else if (const auto* gone = std::get_if<DestroyExtent>(&action)) {
    for (const auto& [id, s] : sessions_) {
      EXPECT_EQ(s->extents.count(gone->extent), 0u);
    }
    extents_.erase(gone->extent);
    const uint64_t key = epoch_ << 32 | gone->extent.value();
    swap_.erase(swap_.lower_bound({key, 0}), swap_.lower_bound({key + 1, 0}));
    Step(ExtentDestroyed{gone->extent, status});
  }
  return true;
}

bool FakeCluster::DeliverToCore(FakeSession& s) {
  if (s.to_core.empty()) return false;
  const Input input = std::move(s.to_core.front());
  s.to_core.pop_front();
  Step(input);
  return true;
}

bool FakeCluster::DeliverToSession(FakeSession& s) {
  if (s.inbox.empty() || s.silent || !s.connected) return false;
  const SessionAction action = std::move(s.inbox.front());
  s.inbox.pop_front();
  Obey(s, action);
  return true;
}

void FakeCluster::Pump() {
  for (bool moved = true; moved;) {
    moved = !manual_memory && DeliverMemory();
    for (auto& [id, s] : sessions_) {
      moved |= DeliverToSession(*s);
      moved |= DeliverToCore(*s);
    }
  }
}

void FakeCluster::Advance(absl::Duration time) {
  const absl::Time end = now_ + time;
  Pump();
  while (core_->next_deadline() <= end) {
    now_ = std::max(now_, core_->next_deadline());
    Step(Tick());
    Pump();
  }
  now_ = end;
}

void FakeCluster::Obey(FakeSession& s, const SessionAction& action) {
  if (const auto* grant = std::get_if<Grant>(&action)) {
    OnGrant(s, *grant);
  } else if (const auto* regrant = std::get_if<Regrant>(&action)) {
    OnRegrant(s, *regrant);
  } else if (const auto* deny = std::get_if<Deny>(&action)) {
    OnDeny(s, *deny);
  } else if (const auto* share = std::get_if<ShareAnswer>(&action)) {
    OnShare(s, *share);
  } else if (const auto* evict = std::get_if<EvictOrder>(&action)) {
    OnEvict(s, *evict);
  } else if (const auto* plan = std::get_if<PlanOrder>(&action)) {
    OnPlan(s, *plan);
  } else if (const auto* trim = std::get_if<TrimOrder>(&action)) {
    OnTrim(s, *trim);
  } else if (const auto* forget = std::get_if<ForgetOrder>(&action)) {
    OnForget(s, *forget);
  } else if (const auto* refuse = std::get_if<Refuse>(&action)) {
    OnRefuse(s, *refuse);
  } else if (const auto* ready = std::get_if<DeviceReady>(&action)) {
    s.ready.push_back(*ready);
    s.ready_behind_gate = s.gate.order.ok();
  } else if (const auto* notice = std::get_if<SendNotice>(&action)) {
    s.notices.push_back(notice->text);
  } else if (const auto* limits = std::get_if<LimitsChanged>(&action)) {
    s.tight = limits->tight;
    s.limit = limits->limit;
  } else if (const auto* gate = std::get_if<GateOrder>(&action)) {
    s.gate = *gate;
    s.waits = false;
    if (gate->open || s.computes) return;
    if (s.lends) Lend(s);
    Send(s, TurnEnded{s.id, gate->device, gate->order, absl::Milliseconds(10),
                      false, absl::Milliseconds(2)});
  }
}

void FakeCluster::OnRefuse(FakeSession& s, const Refuse& refuse) {
  s.refused = true;
  s.connected = false;
  s.refusal = refuse.reason;
  s.to_core.clear();
  s.inbox.clear();
}

void FakeCluster::OnGrant(FakeSession& s, const Grant& grant) {
  auto it = s.requests.find(grant.request);
  ASSERT_TRUE(it != s.requests.end())
      << "request " << grant.request << " answered twice";
  const FakeSession::Wanted wanted = it->second;
  s.requests.erase(it);
  Bytes sum;
  for (const ChunkRef& chunk : grant.new_to_session) s.known.insert(chunk.id);
  for (const ChunkRef& chunk : grant.chunks) {
    sum += chunk.size;
    EXPECT_EQ(s.known.count(chunk.id), 1u) << "no descriptor of " << chunk.id;
    s.lent.erase(chunk.id);
  }
  // A pinned request may get its memory without the token.
  EXPECT_LE(grant.overdraft, wanted.overdraft);
  s.overdraft += grant.overdraft;
  if (wanted.size.is_zero()) return;
  EXPECT_EQ(sum, wanted.size.RoundUpTo(kGranule));
  FakeBuffer& buffer = s.buffers[wanted.buffer];
  if (buffer.id.ok()) {
    CheckRead(buffer.slot, buffer.size, {s.id, buffer.id, buffer.version});
    buffer.resident = true;
    s.totals.restored += buffer.size;
    buffer.clean = (buffer.slot.id.value() >> 48) == 0;
  } else {
    buffer.id = wanted.buffer;
    buffer.size = sum;
    if (s.gated) buffer.mobility = Mobility::kHeld;
  }
  buffer.chunks = grant.chunks;
  buffer.last_use = now_;
  s.changed.insert(buffer.id);
}

void FakeCluster::Lend(FakeSession& s) {
  if (s.cache.empty()) return;
  Release release;
  release.session = s.id;
  release.device = s.device;
  release.lent = true;
  for (const ChunkRef& chunk : s.cache) {
    release.chunks.push_back(chunk.id);
    chunks_[chunk.id].holder = SessionId();
    s.lent.insert(chunk.id);
  }
  s.cache.clear();
  Send(s, release);
}

void FakeCluster::OnRegrant(FakeSession& s, const Regrant& regrant) {
  for (ChunkId id : regrant.chunks) {
    EXPECT_EQ(s.known.count(id), 1u) << "no descriptor of " << id;
    EXPECT_EQ(s.lent.erase(id), 1u) << id << " was not lent";
    s.cache.push_back({id, chunks_[id].size});
  }
}

void FakeCluster::OnDeny(FakeSession& s, const Deny& deny) {
  EXPECT_EQ(s.requests.erase(deny.request), 1u)
      << "request " << deny.request << " answered twice";
  EXPECT_FALSE(deny.reason.empty());
  s.denials.push_back(deny);
}

void FakeCluster::OnEvict(FakeSession& s, const EvictOrder& order) {
  for (const ExtentRef& extent : order.new_to_session) {
    s.extents.insert(extent.id);
  }
  OrderDone done;
  done.session = s.id;
  done.order = order.order;
  Bytes given;
  for (const EvictOrder::Candidate& candidate : order.candidates) {
    done.results.push_back(EvictOne(s, order, candidate, &given));
  }
  Send(s, done);
}

BufferResult FakeCluster::EvictOne(FakeSession& s, const EvictOrder& order,
                                   const EvictOrder::Candidate& candidate,
                                   Bytes* given) {
  BufferResult result;
  result.buffer = candidate.buffer;
  auto it = s.buffers.find(candidate.buffer);
  if (it == s.buffers.end()) {
    result.outcome = Outcome::kFreed;
    return result;
  }
  FakeBuffer& buffer = it->second;
  if (*given >= order.target || buffer.pinned || !buffer.resident || s.skips ||
      (buffer.mobility == Mobility::kHeld && !s.waits)) {
    return result;
  }
  const bool clean = buffer.clean && buffer.slot.id == candidate.slot.id;
  const Content content{s.id, buffer.id, buffer.version};
  if (!clean) {
    Write(candidate.slot, buffer.size, s.fails ? Content() : content);
    for (const SlotPiece& piece : candidate.slot.pieces) {
      EXPECT_EQ(s.extents.count(piece.extent), 1u);
    }
  }
  if (s.fails) {
    result.outcome = Outcome::kFailed;
    if (buffer.slot.id == candidate.slot.id) buffer.clean = false;
    return result;
  }
  buffer.resident = false;
  buffer.clean = false;
  buffer.slot = candidate.slot;
  s.changed.insert(buffer.id);
  ++s.evicted;
  s.clean_evictions += clean;
  if (!clean) s.totals.evicted += buffer.size;
  Release release;
  release.session = s.id;
  release.device = s.device;
  release.order = order.order;
  release.orphan = std::exchange(buffer.orphan, Bytes());
  *given += release.orphan;
  for (const ChunkRef& chunk : buffer.chunks) {
    release.chunks.push_back(chunk.id);
    chunks_[chunk.id].holder = SessionId();
    *given += chunk.size;
  }
  buffer.chunks.clear();
  Send(s, release);
  result.outcome = Outcome::kDone;
  result.clean = clean;
  result.slot = candidate.slot.id;
  return result;
}

void FakeCluster::OnPlan(FakeSession& s, const PlanOrder& order) {
  for (const ExtentRef& extent : order.new_to_session) {
    s.extents.insert(extent.id);
  }
  ++s.plans;
  s.plan.reset();
  if (!order.plan.absences.empty() && !s.planless) s.plan = order;
  Report(s);
  Send(s, OrderDone{s.id, order.order, {}, s.planless ? "no such step" : ""});
}

void FakeCluster::OnTrim(FakeSession& s, const TrimOrder& order) {
  ++s.trims;
  Release release;
  release.session = s.id;
  release.device = s.device;
  release.order = order.order;
  Bytes given;
  while (given < order.target && !s.cache.empty()) {
    given += s.cache.back().size;
    release.chunks.push_back(s.cache.back().id);
    chunks_[s.cache.back().id].holder = SessionId();
    s.cache.pop_back();
  }
  if (!release.chunks.empty()) Send(s, release);
  Send(s, OrderDone{s.id, order.order, {}, ""});
}

void FakeCluster::OnForget(FakeSession& s, const ForgetOrder& order) {
  Forgotten forgotten;
  forgotten.session = s.id;
  forgotten.order = order.order;
  for (ChunkId chunk : order.chunks) {
    EXPECT_NE(chunks_[chunk].holder, s.id) << "asked to forget " << chunk;
    EXPECT_EQ(chunks_[chunk].sharers.count(s.id), 0u) << chunk;
    s.lent.erase(chunk);
    if (s.keeps) {
      forgotten.kept.push_back(chunk);
    } else {
      s.known.erase(chunk);
    }
  }
  for (ExtentId extent : order.extents) s.extents.erase(extent);
  Send(s, forgotten);
}

void FakeCluster::Write(const Slot& slot, Bytes size, const Content& content) {
  Bytes left = size;
  for (const SlotPiece& piece : slot.pieces) {
    auto extent = extents_.find(piece.extent);
    ASSERT_TRUE(extent != extents_.end()) << "extent " << piece.extent;
    EXPECT_LE(piece.offset + piece.size, extent->second);
    for (Bytes at; at < piece.size && left > Bytes(); at += kGranule) {
      swap_[{epoch_ << 32 | piece.extent.value(),
             (piece.offset + at) / kGranule}] = content;
      left -= kGranule;
    }
  }
  EXPECT_LE(left, Bytes()) << "a slot smaller than its buffer";
}

void FakeCluster::CheckRead(const Slot& slot, Bytes size,
                            const Content& content) {
  // The epoch that the slot belongs to is kept in its id's upper bits once it
  // is an old one.
  const uint64_t old = slot.id.value() >> 48;
  const uint64_t epoch = old != 0 ? old : epoch_;
  Bytes left = size;
  for (const SlotPiece& piece : slot.pieces) {
    for (Bytes at; at < piece.size && left > Bytes(); at += kGranule) {
      const auto it = swap_.find(
          {epoch << 32 | piece.extent.value(), (piece.offset + at) / kGranule});
      EXPECT_TRUE(it != swap_.end() && it->second == content)
          << "session " << content.session << " buffer " << content.buffer
          << " version " << content.version << " is not in slot " << slot.id;
      left -= kGranule;
    }
  }
  EXPECT_LE(left, Bytes());
}

}  // namespace mets::core
