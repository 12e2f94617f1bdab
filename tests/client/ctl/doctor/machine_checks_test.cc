#include "client/ctl/doctor/machine_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "common/base/bytes.h"

namespace mets::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MachineChecksTest : public ::testing::Test {
 protected:
  MachineChecksTest() {
    char name[] = "/tmp/mets.XXXXXX";
    dir_ = mkdtemp(name);
    machine_.proc = dir_ + "/proc";
    machine_.sys = dir_ + "/sys";
    machine_.gpus = []() -> absl::StatusOr<std::vector<CudaDeviceInfo>> {
      return absl::NotFoundError("no driver here");
    };
  }
  ~MachineChecksTest() override { std::filesystem::remove_all(dir_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = dir_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  // 7 has METS and TensorFlow, 8 TensorFlow alone, 9 neither.
  void ThreeProcesses() {
    Write("/proc/7/maps",
          "… /lib/libtensorflow_framework.so.2\n… /x/libmets.so");
    Write("/proc/8/maps", "… /lib/libtensorflow_framework.so.2\n");
    Write("/proc/9/maps", "… /lib/libc.so.6\n");
    Write("/proc/self/maps", "… /lib/libtensorflow_framework.so.2\n");
  }
  void OneGpu() {
    machine_.gpus = []() -> absl::StatusOr<std::vector<CudaDeviceInfo>> {
      return std::vector<CudaDeviceInfo>{{"GPU-1", "H200", GiB(139)}};
    };
  }

  std::string dir_;
  Machine machine_;
};

TEST_F(MachineChecksTest, LittleMemoryIsWrongAndSaysWhatTakesIt) {
  Write("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable:  524288 kB\n");
  const Finding finding = CheckHostMemory(machine_);
  EXPECT_EQ(finding.verdict, Verdict::kWrong);
  EXPECT_THAT(finding.text, HasSubstr("512 MiB of 8 GiB"));
  EXPECT_THAT(finding.advice, HasSubstr("swap-space"));
}

TEST_F(MachineChecksTest, EnoughMemoryIsGood) {
  Write("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n");
  EXPECT_EQ(CheckHostMemory(machine_).verdict, Verdict::kGood);
}

TEST_F(MachineChecksTest, HugePagesThatAreOffGetTheCommand) {
  Write("/sys/kernel/mm/transparent_hugepage/enabled",
        "always madvise [never]");
  const Finding finding = CheckHugePages(machine_);
  EXPECT_EQ(finding.verdict, Verdict::kHint);
  EXPECT_THAT(finding.advice, HasSubstr("echo madvise > " + machine_.sys));
  Write("/sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never");
  EXPECT_EQ(CheckHugePages(machine_).verdict, Verdict::kGood);
}

TEST_F(MachineChecksTest, FrameworksWithoutMetsAreNamed) {
  ThreeProcesses();
  const Frameworks found = FindFrameworks(machine_);
  EXPECT_THAT(found.with_mets, ElementsAre(7));
  EXPECT_THAT(found.without_mets, ElementsAre(8));
  const Finding finding = CheckBypassing(machine_);
  EXPECT_EQ(finding.verdict, Verdict::kHint);
  EXPECT_THAT(finding.text, HasSubstr("process 8 "));
  EXPECT_THAT(finding.advice, HasSubstr("metsctl run"));
}

TEST_F(MachineChecksTest, WithoutADriverOnlyHostDevicesAreLeft) {
  const Finding finding = CheckDriver(machine_);
  EXPECT_EQ(finding.verdict, Verdict::kHint);
  EXPECT_THAT(finding.text, HasSubstr("no driver here"));
  EXPECT_TRUE(CheckForeign(machine_).empty());
}

TEST_F(MachineChecksTest, ForeignProcessesOnAGpuAreNamedWithWhatTheyUse) {
  OneGpu();
  ThreeProcesses();
  machine_.gpu_processes = [](const std::string&) {
    return std::vector<CudaProcess>{{7, GiB(1)}, {8, GiB(2)}, {4711, GiB(3)}};
  };
  const Findings findings = CheckForeign(machine_);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].verdict, Verdict::kHint);
  EXPECT_THAT(findings[0].text, HasSubstr("5 GiB"));
  EXPECT_THAT(findings[0].text, HasSubstr("processes 8, 4711"));
}

TEST_F(MachineChecksTest, AGpuOfItsOwnIsGood) {
  OneGpu();
  ThreeProcesses();
  machine_.gpu_processes = [](const std::string&) {
    return std::vector<CudaProcess>{{7, GiB(1)}};
  };
  EXPECT_EQ(CheckForeign(machine_)[0].verdict, Verdict::kGood);
}

TEST(FindingTest, TextHasOneLineEachAndTheAdviceBelow) {
  const Findings findings = {{Verdict::kGood, "one", "fine", ""},
                             {Verdict::kWrong, "two", "broken", "mend it"}};
  const std::string text = ToText(findings);
  EXPECT_THAT(text, HasSubstr("good   one"));
  EXPECT_THAT(text, HasSubstr("WRONG  two"));
  EXPECT_THAT(text, HasSubstr("-> mend it\n"));
  EXPECT_TRUE(AnyWrong(findings));
}

}  // namespace
}  // namespace mets::ctl
