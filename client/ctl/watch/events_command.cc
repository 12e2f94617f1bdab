#include "client/ctl/watch/events_command.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/ctl/admin_client.h"
#include "client/ctl/stop_watch.h"
#include "common/base/job_name.h"
#include "common/base/status_macros.h"

namespace mets::ctl {
namespace {

using Json = nlohmann::ordered_json;

std::string ToJson(const v1::Event& event) {
  Json json = {{"number", event.number()},
               {"unix_us", event.unix_us()},
               {"kind", event.kind()},
               {"device", event.device()},
               {"job", event.job()},
               {"for_job", event.for_job()},
               {"cause", event.cause()},
               {"bytes", event.bytes()},
               {"copied_bytes", event.copied_bytes()},
               {"count", event.count()},
               {"took_seconds", event.took_seconds()},
               {"waited_seconds", event.waited_seconds()},
               {"next_use_seconds", nullptr},
               {"reason", event.reason()},
               {"text", event.text()}};
  if (event.has_next_use_seconds()) {
    json["next_use_seconds"] = event.next_use_seconds();
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string EventLine(const v1::Event& event, bool json) {
  if (json) return ToJson(event) + "\n";
  const std::string when = absl::FormatTime(
      "%Y-%m-%d %H:%M:%E3S", absl::FromUnixMicros(event.unix_us()),
      absl::LocalTimeZone());
  const std::string& text = event.kind() == "denied"
                                ? absl::StrCat("denied: ", event.reason())
                                : event.text();
  return absl::StrCat(when, " ", event.device().empty() ? "-" : event.device(),
                      " ", text, "\n");
}

absl::Status EventsCommand(const EventsOptions& options,
                           const std::string& run_dir) {
  if (!options.job.empty()) {
    METS_RETURN_IF_ERROR(ValidateJobName(options.job));
  }
  StopWatch::BlockSignals();
  METS_ASSIGN_OR_RETURN(AdminClient client, AdminClient::Connect(run_dir));
  v1::WatchEventsRequest request;
  request.set_job(options.job);
  request.set_newest(options.newest);
  request.set_follow(options.follow);
  request.set_details(options.details);
  std::unique_ptr<AdminClient::EventStream> stream =
      client.WatchEvents(request);
  METS_ASSIGN_OR_RETURN(std::unique_ptr<StopWatch> watch,
                        StopWatch::Start(absl::InfiniteDuration(),
                                         [&stream] { stream->Cancel(); }));
  v1::Event event;
  while (stream->Read(&event)) {
    std::fputs(EventLine(event, options.json).c_str(), stdout);
    std::fflush(stdout);  // Somebody may be reading on.
  }
  watch = nullptr;
  return stream->Finish();
}

}  // namespace mets::ctl
