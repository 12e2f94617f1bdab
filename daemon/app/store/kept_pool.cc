#include "daemon/app/store/kept_pool.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/process.h"
#include "common/base/status_macros.h"
#include "daemon/app/store/descriptor_store.h"

namespace mets::app {
namespace {

// A daemon that ends again and again before it serves may do so because of what
// it has taken over.
constexpr uint64_t kMostReaders = 3;

absl::Status Unfit(absl::string_view what) {
  return absl::FailedPreconditionError(what);
}

template <typename Things>
absl::Status CheckDescriptors(const Things& things, const KeptPool& pool) {
  for (const auto& [id, thing] : things) {
    if (pool.descriptors.count(DescriptorStore::NameOf(id)) > 0) continue;
    return Unfit(absl::StrCat("descriptor ", DescriptorStore::NameOf(id),
                              " is missing; FileDescriptorStoreMax= of the ",
                              "service may be too small"));
  }
  return absl::OkStatus();
}

RecordedSession RecordOf(const core::KeptSession& kept) {
  RecordedSession record;
  record.session = kept.id;
  record.domain = kept.domain;
  record.job = kept.job;
  record.uid = kept.process.uid;
  record.pid = kept.process.pid;
  record.start_time = kept.process.start_time;
  return record;
}

}  // namespace

absl::StatusOr<KeptPool> ReadKeptPool(std::map<std::string, UniqueFd> kept) {
  KeptPool pool;
  auto journal = kept.extract(kJournalName);
  if (journal.empty()) return Unfit("there is no journal");
  METS_ASSIGN_OR_RETURN(pool.journal,
                        Journal::Open(std::move(journal.mapped())));
  if (pool.journal->CountReader() > kMostReaders) {
    return Unfit("metsd has ended several times before it served");
  }
  METS_ASSIGN_OR_RETURN(Journal::Contents contents, pool.journal->Read());
  pool.basis = std::move(contents.basis);
  pool.state = std::move(contents.state);
  pool.descriptors = std::move(kept);
  METS_RETURN_IF_ERROR(CheckDescriptors(pool.state.chunks, pool));
  METS_RETURN_IF_ERROR(CheckDescriptors(pool.state.extents, pool));
  return pool;
}

absl::StatusOr<Recovery> RecoverFrom(const KeptPool& pool,
                                     const Recovery& state_file) {
  if (pool.basis.epoch < state_file.last_epoch) {
    return Unfit("another metsd has served since");
  }
  Recovery recovery;
  recovery.epoch = pool.basis.epoch;
  recovery.settings = state_file.settings;
  recovery.first_session = std::max(
      state_file.first_session, SessionId(pool.state.ids.session.value() + 1));
  std::set<std::pair<int32_t, uint64_t>> processes;
  for (const auto& [id, session] : pool.state.sessions) {
    const core::ProcessIdentity& process = session.process;
    if (process.pid <= 0 ||
        !processes.insert({process.pid, process.start_time}).second) {
      return Unfit(absl::StrCat("a process of job '", session.job,
                                "' cannot be told from others"));
    }
    RecordedSession record = RecordOf(session);
    std::optional<UniqueFd> pidfd = OpenIfSame(record);
    if (pidfd.has_value()) {
      recovery.sessions.push_back(
          {std::move(record), *std::move(pidfd), !session.expected});
    } else {
      recovery.ended.push_back(id);
    }
  }
  for (const auto& [id, extent] : pool.state.extents) {
    recovery.held_swap += extent.size;
  }
  for (size_t i = 0; i < pool.basis.devices.size(); ++i) {
    const JournalBasis::Device& device = pool.basis.devices[i];
    Bytes& held = recovery.held[device.name];
    for (const auto& [id, chunk] : pool.state.chunks) {
      if (chunk.device != i) continue;
      if (chunk.size_class >= device.chunk_classes.size()) {
        return Unfit("a chunk has an impossible size");
      }
      held += device.chunk_classes[chunk.size_class];
    }
    for (const auto& [id, session] : pool.state.sessions) {
      if (i < session.orphan.size()) held += session.orphan[i];
    }
    for (const auto& [key, share] : pool.state.shares) {
      if (key.first == i && share.orphan()) held += share.size;
    }
  }
  return recovery;
}

JournalBasis BasisOf(const core::CoreConfig& config) {
  JournalBasis basis;
  basis.epoch = config.epoch;
  for (const core::DeviceConfig& device : config.devices) {
    basis.devices.push_back({device.name, device.kind, device.chunk_classes});
  }
  return basis;
}

absl::Status CheckBasis(const JournalBasis& basis,
                        const std::vector<core::DeviceConfig>& devices) {
  const auto same = [](const JournalBasis::Device& a,
                       const core::DeviceConfig& b) {
    return a.name == b.name && a.kind == b.kind &&
           a.chunk_classes == b.chunk_classes;
  };
  if (std::equal(basis.devices.begin(), basis.devices.end(), devices.begin(),
                 devices.end(), same)) {
    return absl::OkStatus();
  }
  return Unfit("it is of other devices");
}

absl::Status Adopt(KeptPool& pool,
                   const std::vector<core::DeviceConfig>& devices,
                   memory::MemoryManager& memory) {
  for (const auto& [id, chunk] : pool.state.chunks) {
    const core::DeviceConfig& device = devices[chunk.device];
    METS_RETURN_IF_ERROR(memory.Adopt(
        device.id, id, device.chunk_classes[chunk.size_class],
        std::move(pool.descriptors.at(DescriptorStore::NameOf(id)))));
  }
  for (const auto& [id, extent] : pool.state.extents) {
    METS_RETURN_IF_ERROR(memory.Adopt(
        id, extent.size,
        std::move(pool.descriptors.at(DescriptorStore::NameOf(id)))));
  }
  return absl::OkStatus();
}

}  // namespace mets::app
