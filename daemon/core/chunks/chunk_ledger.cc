#include "daemon/core/chunks/chunk_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace mets::core {

bool Chunk::KnownTo(SessionId session) const {
  for (const Knower& knower : knowers) {
    if (knower.session == session) return knower.certain;
  }
  return false;
}

ChunkLedger::ChunkLedger(Bytes pool, std::vector<Bytes> classes,
                         ChangeLog* changes, size_t index)
    : pool_(pool),
      classes_(std::move(classes)),
      changes_(changes),
      index_(index) {
  METS_CHECK(!classes_.empty()) << "a device without chunk classes";
}

Bytes ChunkLedger::unallocated() const {
  Bytes used = orphan_;
  for (Bytes bytes : bytes_) used += bytes;
  return pool_ - used;
}

Bytes ChunkLedger::creatable() const {
  return std::max(unallocated(), Bytes());
}

Chunk* ChunkLedger::At(ChunkId id) const {
  auto it = chunks_.find(id);
  return it == chunks_.end() ? nullptr : it->second.get();
}

const Chunk* ChunkLedger::Find(ChunkId id) const { return At(id); }

const Chunk* ChunkLedger::FindHeld(ChunkId id, SessionId holder) const {
  const Chunk* chunk = At(id);
  return chunk != nullptr && chunk->holder == holder ? chunk : nullptr;
}

template <typename Wanted>
std::vector<const Chunk*> ChunkLedger::Select(Wanted wanted) const {
  std::vector<const Chunk*> selected;
  for (const auto& [id, chunk] : chunks_) {
    if (wanted(*chunk)) selected.push_back(chunk.get());
  }
  std::sort(selected.begin(), selected.end(),
            [](const Chunk* a, const Chunk* b) { return a->id < b->id; });
  return selected;
}

std::vector<const Chunk*> ChunkLedger::HeldBy(SessionId holder) const {
  return Select([&](const Chunk& chunk) { return chunk.holder == holder; });
}

absl::Span<const Chunk* const> ChunkLedger::Free(DomainId domain,
                                                 size_t size_class) const {
  auto it = free_.find(domain);
  if (it == free_.end()) return {};
  return it->second[size_class];
}

std::vector<DomainId> ChunkLedger::Domains() const {
  std::vector<DomainId> domains;
  domains.reserve(free_.size());
  for (const auto& [domain, lists] : free_) domains.push_back(domain);
  return domains;
}

Chunk& ChunkLedger::Get(ChunkId id, ChunkState expected) {
  Chunk* chunk = At(id);
  METS_CHECK(chunk != nullptr) << "no chunk " << id;
  METS_CHECK(chunk->state == expected)
      << "chunk " << id << " is in state " << static_cast<int>(chunk->state)
      << ", not " << static_cast<int>(expected);
  return *chunk;
}

void ChunkLedger::Move(Chunk& chunk, ChunkState state) {
  if (chunk.state == ChunkState::kFree) RemoveFree(chunk);
  bytes_[static_cast<size_t>(chunk.state)] -= chunk.size;
  chunk.state = state;
  bytes_[static_cast<size_t>(state)] += chunk.size;
  if (state == ChunkState::kFree) AddFree(chunk);
}

void ChunkLedger::Erase(Chunk& chunk) {
  bytes_[static_cast<size_t>(chunk.state)] -= chunk.size;
  chunks_.erase(chunk.id);
}

void ChunkLedger::AddFree(Chunk& chunk) {
  FreeLists& lists = free_[chunk.domain];
  lists.resize(classes_.size());
  chunk.request = 0;
  chunk.holder = SessionId();
  chunk.place = lists[chunk.size_class].size();
  lists[chunk.size_class].push_back(&chunk);
}

void ChunkLedger::RemoveFree(Chunk& chunk) {
  auto& list = free_[chunk.domain][chunk.size_class];
  Chunk* last = list.back();
  list[chunk.place] = last;
  last->place = chunk.place;
  list.pop_back();
}

void ChunkLedger::StartCreating(ChunkId id, size_t size_class, DomainId domain,
                                uint64_t request) {
  const Bytes size = classes_[size_class];
  METS_CHECK(size <= creatable())
      << "creating " << size << " of " << creatable();
  Add(id, size_class, domain, ChunkState::kCreating).request = request;
}

Chunk& ChunkLedger::Add(ChunkId id, size_t size_class, DomainId domain,
                        ChunkState state) {
  auto chunk = std::make_unique<Chunk>();
  chunk->id = id;
  chunk->size = classes_[size_class];
  chunk->size_class = size_class;
  chunk->domain = domain;
  chunk->state = state;
  bytes_[static_cast<size_t>(state)] += chunk->size;
  const auto [it, added] = chunks_.emplace(id, std::move(chunk));
  METS_CHECK(added) << "chunk " << id << " exists";
  return *it->second;
}

void ChunkLedger::Created(ChunkId id) {
  Chunk& chunk = Get(id, ChunkState::kCreating);
  Move(chunk, chunk.request != 0 ? ChunkState::kReserved : ChunkState::kFree);
  Note(chunk);
}

void ChunkLedger::TakeOver(const KeptChunk& kept,
                           const std::vector<SessionId>& knowers) {
  const Bytes size = classes_[kept.size_class];
  METS_CHECK(size <= creatable())
      << "taking over " << size << " of " << creatable();
  Chunk& chunk = Add(kept.id, kept.size_class, kept.domain,
                     kept.shared        ? ChunkState::kShared
                     : kept.holder.ok() ? ChunkState::kGranted
                                        : ChunkState::kFree);
  if (chunk.state == ChunkState::kFree) AddFree(chunk);
  chunk.holder = kept.holder;
  for (SessionId session : knowers) {
    chunk.knowers.push_back({session, session == kept.holder});
  }
}

std::optional<KeptChunk> ChunkLedger::Kept(const Chunk& chunk) const {
  switch (chunk.state) {
    case ChunkState::kCreating:
    case ChunkState::kDestroying:
    case ChunkState::kLost:
      return std::nullopt;
    default:
      return KeptChunk{chunk.id,         index_,
                       chunk.size_class, chunk.domain,
                       chunk.holder,     chunk.state == ChunkState::kShared};
  }
}

void ChunkLedger::Note(const Chunk& chunk) const {
  if (changes_ != nullptr && changes_->on()) changes_->Add(*Kept(chunk));
}

void ChunkLedger::CreateFailed(ChunkId id) {
  Erase(Get(id, ChunkState::kCreating));
}

void ChunkLedger::Reserve(ChunkId id, uint64_t request) {
  Chunk& chunk = Get(id, ChunkState::kFree);
  Move(chunk, ChunkState::kReserved);
  chunk.request = request;
}

void ChunkLedger::Unreserve(ChunkId id) {
  auto it = chunks_.find(id);
  METS_CHECK(it != chunks_.end()) << "no chunk " << id;
  if (it->second->state == ChunkState::kCreating) {
    it->second->request = 0;
    return;
  }
  Move(Get(id, ChunkState::kReserved), ChunkState::kFree);
}

bool ChunkLedger::Grant(ChunkId id, SessionId session) {
  Chunk& chunk = Get(id, ChunkState::kReserved);
  Move(chunk, ChunkState::kGranted);
  chunk.request = 0;
  chunk.holder = session;
  Note(chunk);
  return AddKnower(chunk, session);
}

void ChunkLedger::Regrant(ChunkId id, SessionId session) {
  Chunk& chunk = Get(id, ChunkState::kFree);
  METS_CHECK(chunk.KnownTo(session))
      << "chunk " << id << " is not known to session " << session;
  Move(chunk, ChunkState::kGranted);
  chunk.holder = session;
  Note(chunk);
}

bool ChunkLedger::AddKnower(Chunk& chunk, SessionId session) {
  for (Chunk::Knower& knower : chunk.knowers) {
    if (knower.session != session) continue;
    return !std::exchange(knower.certain, true);
  }
  chunk.knowers.push_back({session, true});
  return true;
}

void ChunkLedger::Release(ChunkId id) {
  Release(Get(id, ChunkState::kGranted));
}

void ChunkLedger::Release(Chunk& chunk) {
  Move(chunk, ChunkState::kFree);
  Note(chunk);
}

absl::StatusOr<Bytes> ChunkLedger::Release(absl::Span<const ChunkId> ids,
                                           SessionId holder) {
  std::vector<Chunk*> chunks;
  chunks.reserve(ids.size());
  Bytes bytes;
  for (ChunkId id : ids) {
    Chunk* chunk = At(id);
    if (chunk == nullptr || chunk->holder != holder ||
        (chunk->place < chunks.size() && chunks[chunk->place] == chunk)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "released chunk ", id.value(), ", which is not its own"));
    }
    chunk->place = chunks.size();  // It is in no free list.
    chunks.push_back(chunk);
    bytes += chunk->size;
  }
  for (Chunk* chunk : chunks) Release(*chunk);
  return bytes;
}

void ChunkLedger::Share(ChunkId id) {
  Chunk& chunk = Get(id, ChunkState::kGranted);
  Move(chunk, ChunkState::kShared);
  chunk.holder = SessionId();
  Note(chunk);
}

void ChunkLedger::Unshare(ChunkId id) {
  Chunk& chunk = Get(id, ChunkState::kShared);
  Move(chunk, ChunkState::kFree);
  Note(chunk);
}

bool ChunkLedger::Know(ChunkId id, SessionId session) {
  return AddKnower(Get(id, ChunkState::kShared), session);
}

void ChunkLedger::Drain(ChunkId id) {
  Move(Get(id, ChunkState::kFree), ChunkState::kDraining);
}

void ChunkLedger::Forget(ChunkId id, SessionId session) {
  auto& knowers = Get(id, ChunkState::kDraining).knowers;
  knowers.erase(std::remove_if(knowers.begin(), knowers.end(),
                               [&](const Chunk::Knower& knower) {
                                 return knower.session == session;
                               }),
                knowers.end());
}

void ChunkLedger::StartDestroying(ChunkId id) {
  Chunk& chunk = Get(id, ChunkState::kDraining);
  METS_CHECK(chunk.knowers.empty())
      << "chunk " << id << " is known to " << chunk.knowers.size();
  Move(chunk, ChunkState::kDestroying);
  if (changes_ != nullptr) changes_->Add(Gone<ChunkId>{id});
}

void ChunkLedger::Destroyed(ChunkId id) {
  Erase(Get(id, ChunkState::kDestroying));
}

void ChunkLedger::DestroyFailed(ChunkId id) {
  Move(Get(id, ChunkState::kDestroying), ChunkState::kLost);
}

std::vector<const Chunk*> ChunkLedger::Draining() const {
  if (bytes(ChunkState::kDraining).is_zero()) return {};
  return Select(
      [](const Chunk& chunk) { return chunk.state == ChunkState::kDraining; });
}

void ChunkLedger::ForgetSession(SessionId session) {
  for (auto& [id, chunk] : chunks_) {
    METS_CHECK(chunk->holder != session)
        << "session " << session << " ends with chunk " << id;
    auto& knowers = chunk->knowers;
    knowers.erase(std::remove_if(knowers.begin(), knowers.end(),
                                 [&](const Chunk::Knower& knower) {
                                   return knower.session == session;
                                 }),
                  knowers.end());
  }
}

void ChunkLedger::MarkUncertain(SessionId session) {
  for (auto& [id, chunk] : chunks_) {
    if (chunk->holder == session) continue;
    for (Chunk::Knower& knower : chunk->knowers) {
      if (knower.session == session) knower.certain = false;
    }
  }
}

void ChunkLedger::ChangeOrphan(Bytes change) {
  METS_CHECK(orphan_ + change >= Bytes()) << orphan_ << " + " << change;
  orphan_ += change;
}

absl::Status ChunkLedger::Check() const {
  std::array<Bytes, kChunkStates> sums;
  for (const auto& [id, chunk] : chunks_) {
    sums[static_cast<size_t>(chunk->state)] += chunk->size;
    const bool granted = chunk->state == ChunkState::kGranted;
    if (granted != chunk->holder.ok()) {
      return absl::InternalError(absl::StrCat(
          "chunk ", id.value(), " in state ", static_cast<int>(chunk->state),
          " has holder ", chunk->holder.value()));
    }
  }
  for (int i = 0; i < kChunkStates; ++i) {
    if (sums[i] != bytes_[i]) {
      return absl::InternalError(
          absl::StrCat("chunks in state ", i, " have ", sums[i].count(),
                       " bytes, the ledger says ", bytes_[i].count()));
    }
  }
  if (orphan_.is_zero() && unallocated() < Bytes()) {
    return absl::InternalError(absl::StrCat("chunks exceed the pool by ",
                                            -unallocated().count(), " bytes"));
  }
  return CheckFreeLists();
}

absl::Status ChunkLedger::CheckFreeLists() const {
  Bytes listed;
  for (const auto& [domain, lists] : free_) {
    for (const auto& list : lists) {
      for (const Chunk* chunk : list) {
        listed += chunk->size;
        if (chunk->state == ChunkState::kFree && chunk->domain == domain &&
            list[chunk->place] == chunk) {
          continue;
        }
        return absl::InternalError(absl::StrCat(
            "chunk ", chunk->id.value(), " stands in a wrong free list"));
      }
    }
  }
  if (listed == bytes(ChunkState::kFree)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("free lists have ", listed.count(),
                                          " bytes, the ledger ",
                                          bytes(ChunkState::kFree).count()));
}

void ChunkLedger::ForEach(
    const std::function<void(const Chunk&)>& visit) const {
  for (const auto& [id, chunk] : chunks_) visit(*chunk);
}

}  // namespace mets::core
