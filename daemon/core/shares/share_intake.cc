#include "daemon/core/shares/share_intake.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/plain_name.h"
#include "daemon/core/events/notes.h"
#include "daemon/core/sessions/session_exit.h"
#include "daemon/core/shares/held_shares.h"

namespace mets::core {
namespace {

constexpr size_t kLongestChecksum = 128;

template <typename Input>
ShareAnswer AnswerTo(const Input& input, ShareOutcome outcome,
                     std::string reason) {
  ShareAnswer answer;
  answer.session = input.session;
  answer.request = input.request;
  answer.outcome = outcome;
  answer.reason = std::move(reason);
  return answer;
}

template <typename Input>
ShareAnswer Done(const Input& input) {
  return AnswerTo(input, ShareOutcome::kDone, "");
}

std::string NameFault(const std::string& name) {
  return std::string(ValidatePlainName("share", name).message());
}

std::string ChecksumFault(const std::string& checksum) {
  const bool prints = std::all_of(checksum.begin(), checksum.end(), [](char c) {
    return absl::ascii_isgraph(c);
  });
  if (prints && checksum.size() <= kLongestChecksum) return "";
  return absl::StrCat("a checksum of ", checksum.size(),
                      " characters: it has at most ", kLongestChecksum,
                      ", printable and without spaces");
}

std::string Shown(const std::string& checksum) {
  return checksum.empty() ? "none" : checksum;
}

}  // namespace

template <typename Input>
Session* ShareIntake::Admit(const Input& input, size_t* index) {
  Session* session = state_.Speaker(input.session);
  if (session == nullptr) return nullptr;
  if (state_.FindDevice(input.device, index) == nullptr) {
    RefuseSession(state_, *session, "shares memory of an unknown device");
    return nullptr;
  }
  if (session->holdings[*index].attached && !session->awaits_snapshot) {
    return session;
  }
  state_.Send(AnswerTo(input, ShareOutcome::kBad,
                       "the process has not attached the device"));
  return nullptr;
}

std::string ShareIntake::ChunkFault(const PublishShare& input,
                                    const ChunkLedger& ledger,
                                    SessionId holder) const {
  std::vector<ChunkId> chunks = input.chunks;
  std::sort(chunks.begin(), chunks.end());
  if (std::adjacent_find(chunks.begin(), chunks.end()) != chunks.end()) {
    return "published a chunk twice";
  }
  for (ChunkId chunk : chunks) {
    if (ledger.FindHeld(chunk, holder) == nullptr) {
      return absl::StrCat("published chunk ", chunk.value(),
                          ", which is not its own");
    }
  }
  return chunks.empty() ? "published no chunks" : "";
}

ShareAnswer ShareIntake::Check(const PublishShare& input,
                               const Session& session, size_t index) {
  const Device& device = state_.devices[index];
  for (std::string fault :
       {NameFault(input.name), ChecksumFault(input.checksum)}) {
    if (fault.empty()) continue;
    return AnswerTo(input, ShareOutcome::kBad, std::move(fault));
  }
  Bytes size;
  for (ChunkId chunk : input.chunks) size += device.ledger.Find(chunk)->size;
  if (input.bytes <= Bytes() || input.bytes > size) {
    return AnswerTo(input, ShareOutcome::kBad,
                    absl::StrCat(input.bytes.count(), " bytes in chunks of ",
                                 size.count()));
  }
  if (state_.devices[index].shares.FindName(session.domain, input.name)) {
    return AnswerTo(
        input, ShareOutcome::kExists,
        absl::StrCat("share '", input.name, "' exists on ", device.config.name,
                     " already; a name is free again once everybody has "
                     "detached it. Attach it, or take another name"));
  }
  const size_t most = state_.config.max_shares_per_domain;
  if (device.shares.CountOf(session.domain) >= most) {
    return AnswerTo(input, ShareOutcome::kRefused,
                    absl::StrCat("share '", input.name, "' would be more than ",
                                 most, " on ", device.config.name,
                                 ", the most that one user's jobs can have; "
                                 "detach others"));
  }
  return Done(input);
}

void ShareIntake::OnPublish(const PublishShare& input) {
  size_t index = 0;
  Session* session = Admit(input, &index);
  if (session == nullptr) return;
  const Share* same =
      state_.devices[index].shares.FindName(session->domain, input.name);
  if (same != nullptr && same->holders.count(session->id) > 0 &&
      same->chunks == input.chunks) {
    SendShare(index, *same, Done(input));  // Its answer was lost.
    return;
  }
  std::string fault =
      ChunkFault(input, state_.devices[index].ledger, session->id);
  if (!fault.empty()) {
    RefuseSession(state_, *session, std::move(fault));
    return;
  }
  ShareAnswer answer = Check(input, *session, index);
  if (answer.outcome == ShareOutcome::kDone) {
    Publish(input, *session, index);
  } else {
    state_.Send(std::move(answer));
  }
}

void ShareIntake::Publish(const PublishShare& input, Session& session,
                          size_t index) {
  Device& device = state_.devices[index];
  Holding& holding = session.holdings[index];
  Share share;
  share.id = state_.share_ids.Next();
  share.epoch = state_.config.epoch;
  share.domain = session.domain;
  share.name = input.name;
  share.checksum = input.checksum;
  share.bytes = input.bytes;
  share.chunks = input.chunks;
  share.holders = {session.id};
  share.payer = session.id;
  for (ChunkId chunk : input.chunks) {
    share.size += device.ledger.Find(chunk)->size;
    device.ledger.Share(chunk);
  }
  holding.chunk_bytes -= share.size;
  holding.shared += share.size;
  holding.cached = std::min(holding.cached, holding.own());
  NoteShare(state_, EventKind::kShared, session, index, share);
  SendShare(index, device.shares.Add(std::move(share)), Done(input));
}

ShareAnswer ShareIntake::Check(const AttachShare& input, const Session& session,
                               const Share* share, size_t index) const {
  const std::string& device = state_.devices[index].config.name;
  std::string fault = NameFault(input.name);
  if (!fault.empty()) {
    return AnswerTo(input, ShareOutcome::kBad, std::move(fault));
  }
  if (share == nullptr) {
    return AnswerTo(
        input, ShareOutcome::kUnknown,
        absl::StrCat("no share '", input.name, "' on ", device,
                     ": nobody has published it, or everybody has detached it. "
                     "Only what jobs of the same user (or listener) publish is "
                     "seen, and nothing from before a restart of metsd"));
  }
  if (share->holders.count(session.id) > 0) {
    return AnswerTo(
        input, ShareOutcome::kExists,
        absl::StrCat("this process has share '", input.name, "' already"));
  }
  if (!input.bytes.is_zero() && input.bytes != share->bytes) {
    return AnswerTo(
        input, ShareOutcome::kRefused,
        absl::StrCat("share '", input.name, "' has ", share->bytes.count(),
                     " bytes, not ", input.bytes.count()));
  }
  if (!input.checksum.empty() && input.checksum != share->checksum) {
    return AnswerTo(input, ShareOutcome::kRefused,
                    absl::StrCat("share '", input.name, "' was published with ",
                                 "checksum ", Shown(share->checksum),
                                 ", which is not the one asked for"));
  }
  return Done(input);
}

void ShareIntake::OnAttach(const AttachShare& input) {
  size_t index = 0;
  Session* session = Admit(input, &index);
  if (session == nullptr) return;
  Share* share =
      state_.devices[index].shares.FindName(session->domain, input.name);
  ShareAnswer answer = Check(input, *session, share, index);
  if (answer.outcome != ShareOutcome::kDone) {
    state_.Send(std::move(answer));
    return;
  }
  share->holders.insert(session->id);
  NoteShare(state_, EventKind::kShareTaken, *session, index, *share);
  state_.devices[index].shares.Changed(*share);
  SendShare(index, *share, std::move(answer));
}

void ShareIntake::SendShare(size_t index, const Share& share,
                            ShareAnswer answer) {
  ChunkLedger& ledger = state_.devices[index].ledger;
  answer.share = share.id;
  answer.bytes = share.bytes;
  answer.checksum = share.checksum;
  for (ChunkId chunk : share.chunks) {
    answer.chunks.push_back({chunk, ledger.Find(chunk)->size});
    if (ledger.Know(chunk, answer.session)) {
      answer.new_to_session.push_back(answer.chunks.back());
    }
  }
  state_.Send(std::move(answer));
}

void ShareIntake::OnDetach(const DetachShare& input) {
  Session* session = state_.Speaker(input.session);
  if (session == nullptr || session->awaits_snapshot) return;
  size_t index = 0;
  Device* device = state_.FindDevice(input.device, &index);
  if (device == nullptr) {
    RefuseSession(state_, *session, "detached a share of an unknown device");
    return;
  }
  Share* share =
      device->shares.Find({session->domain, input.epoch, input.share});
  if (share != nullptr) LeaveShare(state_, index, *share, *session);
}

}  // namespace mets::core
