// OperatorDesk: logs what operators want to read later, and hands the rest on.
#ifndef METS_DAEMON_APP_OPERATOR_DESK_H_
#define METS_DAEMON_APP_OPERATOR_DESK_H_

#include <spdlog/logger.h>

#include <utility>
#include <variant>

#include "daemon/core/ports.h"

namespace mets::app {

// Borrows the logger and the port behind it.
class OperatorDesk : public core::OperatorPort {
 public:
  OperatorDesk(spdlog::logger& log, core::OperatorPort& next)
      : log_(log), next_(next) {}

  void Perform(core::OperatorAction action) override {
    if (const auto* ended = std::get_if<core::JobEnded>(&action)) {
      log_.info("{}", ended->text);
    } else {
      next_.Perform(std::move(action));
    }
  }

 private:
  spdlog::logger& log_;
  core::OperatorPort& next_;
};

}  // namespace mets::app

#endif  // METS_DAEMON_APP_OPERATOR_DESK_H_
