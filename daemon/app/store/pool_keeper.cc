#include "daemon/app/store/pool_keeper.h"

#include <set>
#include <utility>

namespace mets::app {
namespace {

std::set<std::string> Names(const std::map<std::string, UniqueFd>& kept) {
  std::set<std::string> names;
  for (const auto& [name, fd] : kept) names.insert(name);
  return names;
}

}  // namespace

PoolKeeper::PoolKeeper(std::map<std::string, UniqueFd> kept,
                       spdlog::logger& log)
    : log_(log),
      kept_(std::move(kept)),
      store_(Names(kept_), [this](auto& why) {
        given_up_ = true;
        Report(why);
      }) {}

std::optional<KeptPool> PoolKeeper::TakeBack() {
  if (kept_.empty()) return std::nullopt;
  absl::StatusOr<KeptPool> pool = ReadKeptPool(std::move(kept_));
  kept_.clear();
  if (pool.ok()) return *std::move(pool);
  Reject(pool.status());
  return std::nullopt;
}

void PoolKeeper::Reject(const absl::Status& why) {
  log_.warn(
      "what an earlier metsd has kept is of no use: {}; what jobs hold stays "
      "theirs until it has left the device once",
      std::string(why.message()));
  store_.DropAll();
}

void PoolKeeper::Begin(std::unique_ptr<Journal> journal, JournalBasis basis,
                       const core::KeptState& state) {
  basis_ = std::move(basis);
  journal_ = std::move(journal);
  std::set<std::string> wanted = {kJournalName};
  for (const auto& [id, chunk] : state.chunks) {
    wanted.insert(DescriptorStore::NameOf(id));
  }
  for (const auto& [id, extent] : state.extents) {
    wanted.insert(DescriptorStore::NameOf(id));
  }
  store_.DropOthers(wanted);
  const bool fresh = journal_ == nullptr;
  if (fresh) {
    absl::StatusOr<std::unique_ptr<Journal>> made = Journal::Create();
    if (!made.ok()) return Report(made.status());
    journal_ = *std::move(made);
  }
  Rewrite(state);
  if (fresh && journal_ != nullptr) store_.Keep(kJournalName, journal_->fd());
}

void PoolKeeper::Record(const std::vector<core::Change>& changes,
                        const std::function<core::KeptState()>& state) {
  if (journal_ == nullptr) return;
  if (given_up_) {
    journal_->Break();
    journal_.reset();
    return;
  }
  if (journal_->long_enough()) return Rewrite(state());
  const absl::Status status = journal_->Append(changes);
  if (status.ok()) return;
  journal_.reset();
  Report(status);
}

void PoolKeeper::Rewrite(const core::KeptState& state) {
  const absl::Status status = journal_->Rewrite(basis_, state);
  if (status.ok()) return;
  journal_->Break();
  journal_.reset();
  Report(status);
}

void PoolKeeper::NoteServing() {
  if (journal_ != nullptr) journal_->NoteServing();
}

void PoolKeeper::Report(const absl::Status& status) {
  log_.warn("a restart of metsd will not keep the pool: {}",
            std::string(status.message()));
}

}  // namespace mets::app
