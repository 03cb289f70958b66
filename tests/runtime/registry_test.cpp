// Names of devices: one spelling each, and messages that help.
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/device.h"
#include <pangrad/error.h>

namespace pg::runtime {
namespace {

std::string message_of(std::string_view name) {
  try {
    device(name);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(Registry, NamesHaveOneSpelling) {
  EXPECT_EQ(canonical_device("cpu"), "CPU");
  EXPECT_EQ(canonical_device("CPU:0"), "CPU");
  EXPECT_EQ(canonical_device("Cpu:007"), "CPU:7");
  EXPECT_EQ(canonical_device("CPU:"), "CPU");
  EXPECT_EQ(canonical_device("NULL:gpu"), "NULL:gpu");
  EXPECT_EQ(canonical_device("NULL:gpu:0"), "NULL:gpu");
  EXPECT_EQ(canonical_device("NULL:gpu:02"), "NULL:gpu:2");
  EXPECT_EQ(canonical_device("NULL:0"), "NULL");
  EXPECT_EQ(canonical_device("disk:/tmp/../tmp/x:0"), "DISK:/tmp/x:0");
  EXPECT_EQ(canonical_device("DISK:x"), "DISK:" + (std::filesystem::current_path() / "x").string());
}

TEST(Registry, OneNameIsOneDevice) {
  EXPECT_EQ(&device("CPU"), &device("cpu:0"));
  EXPECT_NE(&device("CPU"), &device("CPU:1"));
  EXPECT_EQ(device("cpu:1").name(), "CPU:1");
  EXPECT_EQ(device("null").name(), "NULL");
}

TEST(Registry, AnUnknownNameListsTheOnesThereAre) {
  const std::string message = message_of("FPGA:3");
  EXPECT_NE(message.find("[device] there is no \"FPGA:3\"; there are CPU"), std::string::npos) << message;
  EXPECT_NE(message.find("NULL"), std::string::npos) << message;
  EXPECT_NE(message.find("DISK:path"), std::string::npos) << message;
}

TEST(Registry, ANameThatCannotBeSaysWhy) {
  EXPECT_EQ(message_of("CPU:one"), "[device] \"CPU:one\": after \"CPU:\" comes a number");
  EXPECT_EQ(message_of("DISK"), "[device] \"DISK\" needs the path of a file: \"DISK:path\"");
  EXPECT_EQ(message_of("CPU:99999999999999999999"),
            "[device] \"CPU:99999999999999999999\": the last is CPU:1023");
}

TEST(Registry, ADeviceThatDoesNotOpenIsListedWithItsReason) {
  register_device({.name = "BROKEN",
                   .argument = DeviceArgument::Ordinal,
                   .open = [](auto&, auto&) -> std::unique_ptr<Device> {
                     throw DeviceError("libbroken.so is missing");
                   }});
  EXPECT_EQ(message_of("BROKEN"), "libbroken.so is missing");
  const std::string message = message_of("FPGA");
  EXPECT_NE(message.find("; BROKEN did not open: libbroken.so is missing"), std::string::npos) << message;
  EXPECT_EQ(message.find("there are BROKEN"), std::string::npos) << message;
  EXPECT_THROW(register_device({.name = "BROKEN", .open = {}}), ValueError);
}

TEST(Registry, ThreadsGetTheSameDevice) {
  std::vector<Device*> seen(8);
  std::vector<std::thread> threads;
  for (Device*& slot : seen) threads.emplace_back([&slot] { slot = &device("NULL:threads"); });
  for (std::thread& thread : threads) thread.join();
  for (const Device* one : seen) EXPECT_EQ(one, seen[0]);
}

}  // namespace
}  // namespace pg::runtime
