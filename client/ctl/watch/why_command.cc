#include "client/ctl/watch/why_command.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/ctl/admin_client.h"
#include "client/ctl/watch/events_command.h"
#include "common/base/job_name.h"
#include "common/base/status_macros.h"

namespace mets::ctl {
namespace {

using Json = nlohmann::ordered_json;

template <typename Lines>
void AppendList(const char* heading, const Lines& lines, std::string* text) {
  if (lines.empty()) return;
  absl::StrAppend(text, heading, "\n");
  for (const std::string& line : lines) {
    absl::StrAppend(text, "  - ", line, "\n");
  }
}

std::string Indented(const std::string& text) {
  return absl::StrCat("  ", absl::StrReplaceAll(text, {{"\n", "\n  "}}), "\n");
}

}  // namespace

std::string WhyText(const std::string& job,
                    const v1::ExplainJobResponse& answer) {
  std::string text;
  for (const v1::JobAnswer& a : answer.answers()) {
    absl::StrAppend(&text, job, " on ", a.device(), ": ", a.summary(), "\n");
    if (!a.report().empty()) text += Indented(a.report());
    AppendList("Why:", a.reasons(), &text);
    AppendList("What would help:", a.advice(), &text);
  }
  if (answer.answers().empty()) {
    absl::StrAppend(&text, job, ": no process of it uses a device now\n");
  }
  if (!answer.last().empty()) text += "What happened last:\n";
  for (const v1::Event& event : answer.last()) {
    std::string line = EventLine(event, /*json=*/false);
    line.pop_back();
    text += Indented(line);
  }
  return text;
}

std::string WhyJson(const v1::ExplainJobResponse& answer) {
  Json json = {{"answers", Json::array()}, {"last", Json::array()}};
  for (const v1::JobAnswer& a : answer.answers()) {
    json["answers"].push_back({{"device", a.device()},
                               {"phase", a.phase()},
                               {"summary", a.summary()},
                               {"reasons", a.reasons()},
                               {"advice", a.advice()},
                               {"report", a.report()}});
  }
  for (const v1::Event& event : answer.last()) {
    json["last"].push_back(Json::parse(EventLine(event, /*json=*/true)));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status WhyCommand(const std::string& job, bool json,
                        const std::string& run_dir) {
  METS_RETURN_IF_ERROR(ValidateJobName(job));
  METS_ASSIGN_OR_RETURN(AdminClient client, AdminClient::Connect(run_dir));
  METS_ASSIGN_OR_RETURN(const v1::ExplainJobResponse answer,
                        client.ExplainJob(job));
  const std::string text = json ? WhyJson(answer) : WhyText(job, answer);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace mets::ctl
