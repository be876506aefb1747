// Tests the probes of tools/measure on a device: results are checked, and rates have the expected order.
#include "tools/measure/machine/ceilings.hpp"

#include <gtest/gtest.h>

#include <iostream>
#include <map>

namespace kintsugi::measure {
namespace {

std::map<std::string, double> measured(const DeviceFacts& facts) {
  const DeviceMonitor monitor(facts.pci_address);
  std::map<std::string, double> rates;
  for (const Ceiling& ceiling : measure_ceilings(DeviceStream{}, facts, monitor)) {
    std::cout << ceiling.name << ": " << 1e-12 * ceiling.rate << " (" << 1e-12 * ceiling.lowest << " to "
              << 1e-12 * ceiling.highest << ") T/s by " << ceiling.method << ", "
              << ceiling.state.power_watts.value_or(0) << " W, " << ceiling.state.clock_mhz.value_or(0)
              << " MHz\n";
    EXPECT_LE(ceiling.lowest, ceiling.rate);
    EXPECT_LE(ceiling.rate, ceiling.highest);
    rates[ceiling.name] = ceiling.rate;
  }
  return rates;
}

TEST(Ceilings, RatesOfFormatsAreInOrder) {
  ASSERT_EQ(device_missing_reason(), "");
  std::map<std::string, double> rates = measured(device_facts());
  ASSERT_EQ(rates.size(), 5U);
  EXPECT_GT(rates["int8"], 1.5 * rates["fp16"]);
  EXPECT_GT(rates["fp16"], 1.5 * rates["tf32"]);
  EXPECT_NEAR(rates["bf16"] / rates["fp16"], 1, 0.25);
  EXPECT_GT(rates["copy"], 1e11);
}

// The generic probes serve architectures without probes of their own.
TEST(Ceilings, RatesOfGenericProbesAreInOrder) {
  ASSERT_EQ(device_missing_reason(), "");
  DeviceFacts facts = device_facts();
  facts.major = 8;
  std::map<std::string, double> rates = measured(facts);
  EXPECT_GT(rates["int8"], 1.5 * rates["fp16"]);
  EXPECT_GT(rates["fp16"], 1.5 * rates["tf32"]);
}

TEST(DeviceGraph, DoesOnlyTheCapturedWork) {
  const DeviceStream stream;
  const DeviceMemory memory(1024);
  stream.fill(memory.data(), 1, memory.bytes());
  const DeviceGraph graph(stream, [&] { stream.fill(memory.data() + 256, 7, 256); });
  unsigned char before = 0;
  stream.download(&before, memory.data() + 256, 1);
  stream.synchronize();
  EXPECT_EQ(before, 1);
  EXPECT_GT(stream.seconds_of([&] { graph.launch(stream); }), 0);
  std::vector<unsigned char> bytes(memory.bytes());
  stream.download(bytes.data(), memory.data(), bytes.size());
  stream.synchronize();
  for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], i / 256 == 1 ? 7 : 1) << i;
}

TEST(DeviceGraph, AnErrorInsideEndsTheCapture) {
  const DeviceStream stream;
  const auto refuse = [] { throw std::runtime_error("refused"); };
  EXPECT_THROW(DeviceGraph(stream, refuse), std::runtime_error);
  stream.synchronize();  // fails while the stream is captured
}

}  // namespace
}  // namespace kintsugi::measure
