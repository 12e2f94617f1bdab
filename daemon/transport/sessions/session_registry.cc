#include "daemon/transport/sessions/session_registry.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/bytes.h"
#include "common/base/status_macros.h"
#include "common/base/weight.h"
#include "daemon/core/operating/caps.h"

namespace mets::transport {
namespace {

// uids are shared by the sessions of a user; strangers behind the overflow uid
// get a domain for each session, beyond the 32 bits of uids.
DomainId DomainOf(const ProcessIdentity& process, SessionId session) {
  if (process.uid == kOverflowUid) {
    return DomainId((uint64_t{1} << 33) + session.value());
  }
  return DomainId(uint64_t{process.uid} + 1);
}

}  // namespace

SessionRegistry::SessionRegistry(RegistryOptions options, core::InputSink& sink)
    : sink_(sink),
      max_sessions_per_uid_(options.max_sessions_per_uid),
      listeners_(std::move(options.listeners)),
      caps_(std::move(options.caps)),
      next_session_(std::max<uint64_t>(options.first_session.value(), 1)),
      expected_(std::move(options.expected)) {
  for (KeptIdentity& kept : options.kept) {
    auto record = std::make_unique<Record>();
    record->session = kept.identity.session;
    record->process = kept.identity.process;
    record->phase = Phase::kOpen;
    record->job = std::move(kept.job);
    ++counts_[{record->process.uid, record->listener}];
    records_[record->session] = std::move(record);
  }
}

SessionRegistry::Record* SessionRegistry::FindRecord(SessionId session) {
  const auto it = records_.find(session);
  return it == records_.end() ? nullptr : it->second.get();
}

SessionRegistry::Record* SessionRegistry::FindConnection(uint64_t connection) {
  const auto it = by_connection_.find(connection);
  return it == by_connection_.end() ? nullptr : FindRecord(it->second);
}

void SessionRegistry::Erase(const Record& record) {
  const auto count = counts_.find({record.process.uid, record.listener});
  if (--count->second == 0) counts_.erase(count);
  by_token_.erase(record.token);
  by_connection_.erase(record.connection);
  records_.erase(SessionId(record.session));
}

absl::Status SessionRegistry::CheckCount(uid_t uid, size_t listener,
                                         int more) const {
  const auto it = counts_.find({uid, listener});
  const int count = it == counts_.end() ? 0 : it->second;
  if (count + more <= max_sessions_per_uid_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "user ", uid, " has ", max_sessions_per_uid_,
      " sessions, which is the most that metsd allows; end some of the user's "
      "processes that use METS"));
}

bool SessionRegistry::MayComeBack(const ProcessIdentity& process) const {
  bool open = false;
  for (const auto& [session, record] : records_) {
    if (!(record->process == process)) continue;
    if (record->phase == Phase::kAdmitted) return false;
    open = open || record->phase == Phase::kOpen;
  }
  return open;
}

absl::StatusOr<std::string> SessionRegistry::Admit(
    uint64_t connection, const ProcessIdentity& process,
    std::shared_ptr<FdConnection> descriptors, size_t listener) {
  absl::MutexLock lock(&mutex_);
  const absl::Status within = CheckCount(process.uid, listener, 1);
  if (!within.ok() && !MayComeBack(process)) return within;
  ++counts_[{process.uid, listener}];
  auto record = std::make_unique<Record>();
  record->session = SessionId(next_session_++);
  record->process = process;
  record->token = ipc::NewToken();
  record->connection = connection;
  record->listener = listener;
  record->descriptors = std::move(descriptors);
  const std::string token = record->token;
  by_token_[token] = record->session;
  by_connection_[connection] = record->session;
  records_[record->session] = std::move(record);
  return token;
}

bool SessionRegistry::ConnectionClosed(uint64_t connection) {
  absl::MutexLock lock(&mutex_);
  Record* record = FindConnection(connection);
  if (record == nullptr) return false;
  record->descriptors->Close();
  if (record->phase == Phase::kAdmitted) {
    Erase(*record);
    return false;
  }
  // Without descriptors the stream is of no use; the client opens both anew.
  if (record->stream != nullptr) {
    record->stream->Close(
        absl::UnavailableError("the descriptor socket was closed"));
  }
  return true;
}

bool SessionRegistry::Knows(uint64_t connection) const {
  absl::MutexLock lock(&mutex_);
  return by_connection_.contains(connection);
}

void SessionRegistry::ProcessEnded(uint64_t connection) {
  absl::MutexLock lock(&mutex_);
  Record* record = FindConnection(connection);
  if (record == nullptr) return;
  record->descriptors->Close();
  if (record->stream != nullptr) {
    record->stream->Close(absl::UnavailableError("the process has ended"));
  }
  if (record->phase != Phase::kAdmitted) {
    sink_.Post(core::SessionEnded{record->session});
  }
  Erase(*record);
}

void SessionRegistry::ExpectedProcessEnded(SessionId session) {
  absl::MutexLock lock(&mutex_);
  if (const Record* record = FindRecord(session)) {
    if (record->connection != 0) return;
    sink_.Post(core::SessionEnded{session});
    Erase(*record);
    return;
  }
  expected_.erase(std::remove_if(expected_.begin(), expected_.end(),
                                 [session](const SessionIdentity& e) {
                                   return e.session == session;
                                 }),
                  expected_.end());
  sink_.Post(core::ExpectedSessionGone{session});
}

SessionId SessionRegistry::FindExpected(const ProcessIdentity& process) const {
  for (const SessionIdentity& expected : expected_) {
    if (process.pid != 0 && expected.process == process) {
      return expected.session;
    }
  }
  return SessionId();
}

void SessionRegistry::SetCaps(CapRules caps) {
  absl::MutexLock lock(&mutex_);
  caps_ = std::move(caps);
}

void SessionRegistry::ApplyRules(const Record& record,
                                 core::SessionOpened* opened) const {
  opened->caps = caps_.all;
  const auto own = caps_.by_uid.find(record.process.uid);
  if (own != caps_.by_uid.end()) {
    opened->caps = core::Narrowed(opened->caps, own->second);
  }
  if (record.listener >= listeners_.size()) return;
  const ListenerRule& rule = listeners_[record.listener];
  if (!rule.job.empty()) opened->job = rule.job;
  if (rule.domain.ok()) opened->domain = rule.domain;
  opened->caps = core::Narrowed(opened->caps, rule.caps);
}

void SessionRegistry::Open(const v1::Hello& hello, Record& record) {
  core::SessionOpened opened;
  opened.session = record.session;
  opened.domain = DomainOf(record.process, record.session);
  opened.process = record.process;
  opened.job = hello.job();
  opened.limit = Bytes(static_cast<int64_t>(hello.limit_bytes()));
  opened.guarantee = Bytes(static_cast<int64_t>(hello.guarantee_bytes()));
  opened.priority = hello.priority();
  opened.weight =
      static_cast<int>(std::clamp<uint32_t>(hello.weight(), 1, kMostWeight));
  opened.recovers = FindExpected(record.process);
  opened.expects_snapshot = hello.reconnect() || opened.recovers.ok();
  record.phase = Phase::kOpen;
  ApplyRules(record, &opened);
  record.job = opened.job;
  record.welcomes_owed = 1;
  sink_.Post(std::move(opened));
}

void SessionRegistry::Resume(Record& record,
                             std::shared_ptr<ClientStream> stream) {
  if (record.stream != nullptr) {
    record.stream->Close(absl::AbortedError("replaced by a newer stream"));
    sink_.Post(core::SessionLost{record.session});
  }
  record.stream = std::move(stream);
  ++record.welcomes_owed;
  sink_.Post(core::SessionResumed{record.session});
}

SessionRegistry::Record* SessionRegistry::Previous(const v1::Hello& hello,
                                                   const Record& record) {
  const auto it = by_token_.find(hello.previous_token());
  if (it == by_token_.end()) return Kept(hello, record.process);
  Record* previous = FindRecord(it->second);
  if (previous == &record || previous->phase != Phase::kOpen) return nullptr;
  return previous->process == record.process ? previous : nullptr;
}

SessionRegistry::Record* SessionRegistry::Kept(const v1::Hello& hello,
                                               const ProcessIdentity& process) {
  if (!hello.reconnect()) return nullptr;
  for (const auto& [session, record] : records_) {
    if (record->connection == 0 && record->process == process) {
      return record.get();
    }
  }
  return nullptr;
}

// The older session goes on with the newer one's socket and token.
SessionRegistry::Record& SessionRegistry::TakeOver(Record& previous,
                                                   const Record& record) {
  if (previous.descriptors != nullptr) previous.descriptors->Close();
  by_token_.erase(previous.token);
  by_connection_.erase(previous.connection);
  previous.token = record.token;
  previous.connection = record.connection;
  previous.descriptors = record.descriptors;
  Erase(record);
  by_token_[previous.token] = previous.session;
  by_connection_[previous.connection] = previous.session;
  return previous;
}

absl::StatusOr<SessionId> SessionRegistry::Attach(
    const v1::Hello& hello, std::shared_ptr<ClientStream> stream) {
  absl::MutexLock lock(&mutex_);
  const auto it = by_token_.find(hello.token());
  if (it == by_token_.end()) {
    return absl::UnauthenticatedError(
        "wrong token: the stream's Hello must carry the token that fd.sock "
        "gave to this process in the same run of metsd");
  }
  Record* record = FindRecord(it->second);
  if (record->phase == Phase::kRefused) {
    return absl::FailedPreconditionError("metsd has refused this session");
  }
  if (record->phase == Phase::kAdmitted) {
    Record* previous = Previous(hello, *record);
    if (previous == nullptr) {
      METS_RETURN_IF_ERROR(
          CheckCount(record->process.uid, record->listener, 0));
      record->stream = std::move(stream);
      Open(hello, *record);
      return record->session;
    }
    record = &TakeOver(*previous, *record);
  } else if (!hello.reconnect()) {
    return absl::FailedPreconditionError("this session has a stream already");
  }
  Resume(*record, std::move(stream));
  return record->session;
}

void SessionRegistry::PostFrom(const ClientStream* stream, SessionId session,
                               core::Input input) {
  absl::MutexLock lock(&mutex_);
  const Record* record = FindRecord(session);
  if (record == nullptr || record->stream.get() != stream) return;
  sink_.Post(std::move(input));
}

bool SessionRegistry::Detach(const ClientStream* stream, SessionId session) {
  absl::MutexLock lock(&mutex_);
  Record* record = FindRecord(session);
  if (record == nullptr) return true;  // Its process has ended before it.
  if (record->stream.get() != stream) return false;
  record->stream = nullptr;
  if (record->phase == Phase::kOpen) sink_.Post(core::SessionLost{session});
  return true;
}

Route SessionRegistry::Find(SessionId session) const {
  absl::MutexLock lock(&mutex_);
  const auto it = records_.find(session);
  if (it == records_.end() || it->second->welcomes_owed > 0) return {};
  return {it->second->stream, it->second->descriptors};
}

Route SessionRegistry::Welcome(SessionId session) {
  absl::MutexLock lock(&mutex_);
  Record* record = FindRecord(session);
  if (record == nullptr) return {};
  if (record->welcomes_owed > 0) --record->welcomes_owed;
  if (record->welcomes_owed > 0) return {};
  return {record->stream, record->descriptors};
}

Route SessionRegistry::Refuse(SessionId session) {
  absl::MutexLock lock(&mutex_);
  Record* record = FindRecord(session);
  if (record == nullptr) return {};
  record->phase = Phase::kRefused;
  return {record->stream, record->descriptors};
}

void SessionRegistry::NoteDevice(SessionId session, const std::string& device) {
  absl::MutexLock lock(&mutex_);
  Record* record = FindRecord(session);
  if (record == nullptr) return;
  std::vector<std::string>& known = record->devices;
  if (std::find(known.begin(), known.end(), device) == known.end()) {
    known.push_back(device);
  }
}

absl::StatusOr<JobOnDevice> SessionRegistry::FindJob(
    const std::string& job, const std::string& device) const {
  absl::MutexLock lock(&mutex_);
  std::vector<JobOnDevice> found;
  std::vector<std::string> texts;
  std::set<std::string> jobs;
  for (const auto& [session, record] : records_) {
    if (record->phase != Phase::kOpen || record->stream == nullptr) continue;
    jobs.insert(record->job);
    if (record->job != job) continue;
    for (const std::string& used : record->devices) {
      if (!device.empty() && used != device) continue;
      found.push_back({session, used});
      texts.push_back(
          absl::StrCat("process ", record->process.pid, " on ", used));
    }
  }
  if (found.size() == 1) return found[0];
  const std::string where = device.empty() ? "" : absl::StrCat(" on ", device);
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no process of a job '", job, "' is connected", where,
        jobs.empty()
            ? "; no job is"
            : absl::StrCat("; there are: ", absl::StrJoin(jobs, ", "))));
  }
  std::sort(texts.begin(), texts.end());
  return absl::FailedPreconditionError(absl::StrCat(
      "job '", job, "' has more than one session", where, ": ",
      absl::StrJoin(texts, ", "),
      "; only one can be recorded: give the process to be recorded a job name "
      "of its own, or name the device"));
}

uint64_t SessionRegistry::ConnectionOf(SessionId session) const {
  absl::MutexLock lock(&mutex_);
  const auto it = records_.find(session);
  return it == records_.end() ? 0 : it->second->connection;
}

std::vector<SessionIdentity> SessionRegistry::Identities() const {
  absl::MutexLock lock(&mutex_);
  std::vector<SessionIdentity> identities = expected_;
  for (const auto& [session, record] : records_) {
    if (record->phase != Phase::kAdmitted) {
      identities.push_back({session, record->process});
    }
  }
  return identities;
}

std::vector<std::shared_ptr<ClientStream>> SessionRegistry::Streams() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<ClientStream>> streams;
  for (const auto& [session, record] : records_) {
    if (record->stream != nullptr) streams.push_back(record->stream);
  }
  return streams;
}

}  // namespace mets::transport
