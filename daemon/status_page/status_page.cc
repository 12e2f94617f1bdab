#include "daemon/status_page/status_page.h"

#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/job_name.h"
#include "daemon/status_page/assets.h"
#include "daemon/status_page/bounded_server.h"
#include "daemon/status_page/page_json.h"
#include "daemon/status_page/sampler.h"

namespace mets::status_page {
namespace {

constexpr size_t kMostEvents = 500;
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

const char* TypeOf(absl::string_view name) {
  if (absl::EndsWith(name, ".html")) return "text/html; charset=utf-8";
  if (absl::EndsWith(name, ".svg")) return "image/svg+xml";
  if (absl::EndsWith(name, ".css")) return "text/css; charset=utf-8";
  return "text/javascript; charset=utf-8";
}

// Without the port.
absl::string_view HostOf(absl::string_view header) {
  const size_t bracket = header.find(']');
  if (bracket != absl::string_view::npos) return header.substr(0, bracket + 1);
  return header.substr(0, header.find(':'));
}

bool IsAddress(absl::string_view host) {
  if (host.empty()) return false;
  const bool v6 = absl::ConsumePrefix(&host, "[");
  if (v6 && !absl::ConsumeSuffix(&host, "]")) return false;
  for (char c : host) {
    if (!absl::ascii_isdigit(c) && c != '.' &&
        !(v6 && (c == ':' || absl::ascii_isxdigit(c)))) {
      return false;
    }
  }
  return true;
}

uint64_t Number(const httplib::Request& request, const char* name) {
  uint64_t number = 0;
  if (!absl::SimpleAtoi(request.get_param_value(name), &number)) return 0;
  return number;
}

}  // namespace

bool IsOurHost(absl::string_view header, absl::string_view own) {
  const std::string host = absl::AsciiStrToLower(HostOf(header));
  return IsAddress(host) || host == "localhost" ||
         host == absl::AsciiStrToLower(own) ||
         host == absl::AsciiStrToLower(HostName());
}

class StatusPage::Server {
 public:
  Server(const StatusPageOptions& options, const core::StatusSource& source,
         const core::EventLog& events, const Clock& clock)
      : source_(source),
        events_(events),
        clock_(clock),
        identity_{options.version, HostName(), clock.Now()},
        sampler_(source, clock) {}

  ~Server() {
    if (!thread_.joinable()) return;
    // Until it runs, a stop would be lost.
    while (!server_.is_running()) std::this_thread::yield();
    server_.stop();
    thread_.join();
  }

  // The port; negative when the address cannot be had.
  int Start(const std::string& host, int port) {
    SetUp(host);
    SetPages();
    SetAnswers();
    if (port == 0) {
      port = server_.bind_to_any_port(host);
    } else if (!server_.bind_to_port(host, port)) {
      port = -1;
    }
    if (port > 0) {
      thread_ = std::thread([this] { server_.listen_after_bind(); });
    }
    return port;
  }

 private:
  using Request = httplib::Request;
  using Response = httplib::Response;

  void SetUp(const std::string& host) {
    server_.set_payload_max_length(0);
    // The library's default would share the port with another daemon.
    server_.set_socket_options([](socket_t socket) {
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    });
    server_.set_default_headers({{"Content-Security-Policy", kPolicy},
                                 {"X-Content-Type-Options", "nosniff"},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"Cache-Control", "no-store"}});
    server_.set_pre_routing_handler(
        [host](const Request& request, Response& response) {
          if (request.method != "GET" && request.method != "HEAD") {
            response.status = 405;
            response.set_header("Allow", "GET, HEAD");
          } else if (!IsOurHost(request.get_header_value("Host"), host)) {
            response.status = 403;
            response.set_content("metsd: not the name of this server\n",
                                 "text/plain");
          } else {
            return httplib::Server::HandlerResponse::Unhandled;
          }
          return httplib::Server::HandlerResponse::Handled;
        });
  }

  void SetPages() {
    for (const Asset& asset : Assets()) {
      const bool index = absl::string_view(asset.name) == "index.html";
      server_.Get(index ? "/" : absl::StrCat("/", asset.name),
                  [&asset](const Request&, Response& response) {
                    response.set_content(asset.text, TypeOf(asset.name));
                  });
    }
  }

  void SetAnswers() {
    server_.Get("/api/status", [this](const Request& in, Response& out) {
      Answer(StatusJson(identity_, clock_.Now(), *sampler_.status(),
                        sampler_.Samples(Number(in, "after"))),
             out);
    });
    server_.Get("/api/events", [this](const Request& in, Response& out) {
      Answer(EventsJson(events_.Recent(Number(in, "after"), "", kMostEvents)),
             out);
    });
    server_.Get("/api/why", [this](const Request& in, Response& out) {
      const std::string job = in.get_param_value("job");
      if (!ValidateJobName(job).ok()) {
        out.status = 400;
        return;
      }
      Answer(WhyJson(source_.Why(job)), out);
    });
  }

  static void Answer(const std::string& json, Response& response) {
    response.set_content(json, "application/json");
  }

  const core::StatusSource& source_;
  const core::EventLog& events_;
  const Clock& clock_;
  const Identity identity_;
  Sampler sampler_;
  BoundedServer server_;
  std::thread thread_;
};

StatusPage::StatusPage() = default;
StatusPage::~StatusPage() = default;

absl::StatusOr<std::unique_ptr<StatusPage>> StatusPage::Start(
    const StatusPageOptions& options, const core::StatusSource& source,
    const core::EventLog& events, const Clock& clock) {
  const size_t colon = options.address.rfind(':');
  int port = 0;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(options.address.substr(colon + 1), &port) || port < 0 ||
      port > std::numeric_limits<uint16_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", options.address, "' is no HOST:PORT"));
  }
  std::string host = options.address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  std::unique_ptr<StatusPage> page(new StatusPage);
  page->server_ = std::make_unique<Server>(options, source, events, clock);
  port = page->server_->Start(host, port);
  if (port < 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot serve the status page at ", options.address,
        ": the address is in use or not of this machine; choose another "
        "--status-address, or 'off'"));
  }
  page->address_ = absl::StrCat(options.address.substr(0, colon), ":", port);
  return page;
}

}  // namespace mets::status_page
