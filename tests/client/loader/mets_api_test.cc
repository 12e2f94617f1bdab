#include "client/loader/mets_api.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

namespace mets {
namespace {

TEST(MetsApiTest, WhatIsNotLibmetsIsRefused) {
  MetsApi api;
  std::string error;
  EXPECT_FALSE(LoadMetsApi("/nonexistent/libmets.so", &api, &error));
  EXPECT_NE(error.find("cannot open libmets"), std::string::npos);
  EXPECT_FALSE(LoadMetsApi("libm.so.6", &api, &error));
  EXPECT_NE(error.find("is not libmets"), std::string::npos);
}

TEST(MetsApiTest, AnotherVersionIsRefused) {
  setenv("FAKE_METS_ABI", "99", 1);
  MetsApi api;
  std::string error;
  EXPECT_FALSE(LoadMetsApi(FAKE_METS, &api, &error));
  unsetenv("FAKE_METS_ABI");
  EXPECT_NE(error.find("version 99"), std::string::npos);
}

TEST(MetsApiTest, TheLibraryIsNamedOrLiesBeside) {
  setenv("METS_LIBRARY", "/x/libmets.so", 1);
  EXPECT_EQ(LibmetsPath("/y"), "/x/libmets.so");
  unsetenv("METS_LIBRARY");
  EXPECT_EQ(LibmetsPath("/nonexistent"), "libmets.so");
}

}  // namespace
}  // namespace mets
