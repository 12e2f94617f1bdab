// Doubles for the transport's neighbours.
#ifndef METS_TESTS_DAEMON_TRANSPORT_ADMIN_RECORDING_SINK_H_
#define METS_TESTS_DAEMON_TRANSPORT_ADMIN_RECORDING_SINK_H_

#include <string>
#include <utility>
#include <vector>

#include "daemon/core/ports.h"
#include "daemon/transport/sessions/client_stream.h"

namespace mets::transport {

// Keeps what is posted. For one thread.
class RecordingSink : public core::InputSink {
 public:
  void Post(core::Input input) override { inputs.push_back(std::move(input)); }

  // The names of the inputs so far, e.g. "opened lost resumed".
  std::string Story() const {
    std::string story;
    for (const core::Input& input : inputs) {
      if (!story.empty()) story += " ";
      if (std::holds_alternative<core::SessionOpened>(input)) {
        story += "opened";
      } else if (std::holds_alternative<core::SessionLost>(input)) {
        story += "lost";
      } else if (std::holds_alternative<core::SessionResumed>(input)) {
        story += "resumed";
      } else if (std::holds_alternative<core::SessionEnded>(input)) {
        story += "ended";
      } else if (std::holds_alternative<core::ExpectedSessionGone>(input)) {
        story += "gone";
      } else {
        story += "other";
      }
    }
    return story;
  }

  std::vector<core::Input> inputs;
};

// A stream that only remembers how it was closed.
class FakeStream : public ClientStream {
 public:
  void Send(v1::DaemonMessage message) override {
    sent.push_back(std::move(message));
  }
  void Close(absl::Status status) override {
    if (!closed) close_status = std::move(status);
    closed = true;
  }

  std::vector<v1::DaemonMessage> sent;
  bool closed = false;
  absl::Status close_status;
};

}  // namespace mets::transport

#endif  // METS_TESTS_DAEMON_TRANSPORT_ADMIN_RECORDING_SINK_H_
