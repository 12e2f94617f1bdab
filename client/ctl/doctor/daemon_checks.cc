#include "client/ctl/doctor/daemon_checks.h"

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/ctl/admin_client.h"
#include "client/ctl/doctor/output_of.h"
#include "common/base/bytes.h"

namespace mets::ctl {
namespace {

// One with CUDA has headers of it, and needs a plug-in of its own.
constexpr char kVersionOf[] =
    "import importlib.metadata as m\n"
    "cuda = 'tensorflow/include/external/cuda_cudart'\n"
    "for p in ('tensorflow', 'tensorflow-cpu', 'tensorflow-intel'):\n"
    "  try: d = m.distribution(p)\n"
    "  except m.PackageNotFoundError: continue\n"
    "  has = d.locate_file(cuda).exists()\n"
    "  minor = '.'.join(d.version.split('.')[:2])\n"
    "  print(minor + ('-cuda' if has else '')); break\n";

Finding SocketFinding(const std::string& run_dir, const std::string& name,
                      const std::string& use, Verdict otherwise) {
  const absl::Status status = CheckSocket(run_dir, name);
  if (status.ok()) {
    return {Verdict::kGood, "sockets",
            absl::StrCat(run_dir, "/", name, ": this user may ", use), ""};
  }
  Finding finding{
      otherwise, "sockets",
      absl::StrCat("this user cannot ", use, ": ", status.message()), ""};
  if (!absl::IsPermissionDenied(status)) {
    finding.advice =
        otherwise == Verdict::kWrong
            ? "start metsd (systemctl start metsd), or name its directory with "
              "--run-dir or METS_RUN_DIR"
            : "jobs need no more";
  } else if (absl::StrContains(status.message(), "only group")) {
    finding.advice =
        "have your operator add you to that group, and log in again";
  } else {
    finding.advice = absl::StrCat(
        "have your operator name a group for it: ",
        otherwise == Verdict::kWrong ? "socket-group" : "admin-group",
        " in metsd's configuration");
  }
  return finding;
}

Finding DeviceFinding(const v1::DeviceStatus& device) {
  const auto amount = [](uint64_t n) {
    return FormatBytes(Bytes(n));
  };
  Finding finding{
      Verdict::kGood, "device",
      absl::StrCat(device.id(), ": pool ", amount(device.pool_bytes()),
                   ", free ", amount(device.free_bytes()), "; swap space ",
                   amount(device.swap_used_bytes()), " of ",
                   amount(device.swap_limit_bytes()), " used"),
      ""};
  if (device.drained()) {
    finding.verdict = Verdict::kHint;
    finding.advice = absl::StrCat(
        "it is drained and takes no new jobs: metsctl "
        "undrain ",
        device.id());
  } else if (device.swap_used_bytes() > device.swap_limit_bytes() / 10 * 9) {
    finding.verdict = Verdict::kHint;
    finding.advice =
        "swap space is nearly full: raise swap-space, or end a job";
  }
  return finding;
}

}  // namespace

Findings CheckSockets(const std::string& run_dir) {
  if (absl::IsUnavailable(CheckSocket(run_dir, "fd.sock"))) {
    return {SocketFinding(run_dir, "fd.sock", "run jobs", Verdict::kWrong)};
  }
  return {
      SocketFinding(run_dir, "fd.sock", "run jobs", Verdict::kWrong),
      SocketFinding(run_dir, "session.sock", "run jobs", Verdict::kWrong),
      SocketFinding(run_dir, "admin.sock", "administer metsd", Verdict::kHint)};
}

Findings CheckDaemon(const std::string& run_dir) {
  absl::StatusOr<AdminClient> client = AdminClient::Connect(run_dir);
  if (!client.ok()) return {};
  const absl::StatusOr<v1::GetStatusResponse> status = client->GetStatus();
  if (!status.ok()) {
    return {{Verdict::kWrong, "metsd", std::string(status.status().message()),
             "systemctl restart metsd; jobs go on meanwhile"}};
  }
  Findings findings;
  const bool same = status->version() == METS_VERSION;
  findings.push_back(
      {same ? Verdict::kGood : Verdict::kHint, "metsd",
       absl::StrCat("version ", status->version(), ", metsctl ", METS_VERSION),
       same ? "" : "install metsd and metsctl of one release"});
  for (const v1::DeviceStatus& device : status->devices()) {
    findings.push_back(DeviceFinding(device));
  }
  for (const v1::JobStatus& job : status->jobs()) {
    if (job.unresponsive_sessions() == 0) continue;
    findings.push_back({Verdict::kHint, "job",
                        absl::StrCat("'", job.name(), "' on ", job.device(),
                                     ": ", job.unresponsive_sessions(),
                                     " processes do not answer metsd"),
                        absl::StrCat("see what they do; metsctl kill ",
                                     job.name(), " ends them")});
  }
  return findings;
}

Finding CheckPlugin(const Installation& installation,
                    const std::string& python) {
  Finding finding{Verdict::kHint, "plug-in", "", ""};
  if (installation.plugin.empty()) {
    finding.text = "libmets_tensorflow.so is not installed beside metsctl";
    finding.advice =
        "TensorFlow programs run without METS: build with METS_WITH_TENSORFLOW";
    return finding;
  }
  const absl::StatusOr<std::string> said = OutputOf({python, "-c", kVersionOf});
  if (!said.ok() || said->empty()) {
    finding.text = absl::StrCat("no TensorFlow in ", python);
    finding.advice = "name your jobs' Python with --python";
    return finding;
  }
  const std::string version(absl::StripSuffix(*said, "\n"));
  const std::string needed = absl::StrCat(
      absl::StripSuffix(installation.plugin, ".so"), "-", version, ".so");
  if (access(needed.c_str(), R_OK) == 0) {
    return {Verdict::kGood, "plug-in",
            absl::StrCat("built for TensorFlow ", version, ", which ", python,
                         " has"),
            ""};
  }
  finding.verdict = Verdict::kWrong;
  finding.text = absl::StrCat(python, " has TensorFlow ", version,
                              ", and there is no ", needed);
  finding.advice =
      "its programs run without METS: build the plug-in for it "
      "(-DMETS_TF_PYTHON=…), or install the version that it was built for";
  return finding;
}

}  // namespace mets::ctl
