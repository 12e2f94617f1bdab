// StatusPage: metsd's state in a browser.
#ifndef METS_DAEMON_STATUS_PAGE_STATUS_PAGE_H_
#define METS_DAEMON_STATUS_PAGE_STATUS_PAGE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "daemon/core/ports.h"

namespace mets::status_page {

struct StatusPageOptions {
  std::string address;  // HOST:PORT; port 0: one that is free.
  std::string version;  // Of the daemon.
};

// Whether a request with this Host header is meant for us: a page of another
// site whose name has been made to point here (DNS rebinding) names that site.
// `own` is the host that we listen at.
bool IsOurHost(absl::string_view header, absl::string_view own);

// Serves http://ADDRESS/ from its own threads until it is destroyed: the page,
// its files, and what its script asks for. Only GET; changes nothing. The page
// needs nothing from elsewhere. Sources, log and clock are borrowed.
class StatusPage {
 public:
  // UNAVAILABLE, naming the address and what to do, when it is in use.
  static absl::StatusOr<std::unique_ptr<StatusPage>> Start(
      const StatusPageOptions& options, const core::StatusSource& source,
      const core::EventLog& events, const Clock& clock);
  ~StatusPage();

  // The address in use, with the port that was taken.
  const std::string& address() const { return address_; }

 private:
  class Server;

  StatusPage();

  std::string address_;
  std::unique_ptr<Server> server_;
};

}  // namespace mets::status_page

#endif  // METS_DAEMON_STATUS_PAGE_STATUS_PAGE_H_
