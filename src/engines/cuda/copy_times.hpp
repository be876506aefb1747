// Times of the threads that copy between pageable memory and a device.
#pragma once

namespace kintsugi::core {

// Seconds that the threads of one direction spent, all of them together.
struct CopyTimes {
  int threads = 0;
  double waiting = 0;   // for the device, which reads or fills pinned memory
  double copying = 0;   // between pageable and pinned memory
  double queueing = 0;  // copies of the device

  void add(const CopyTimes& other) {
    threads += other.threads;
    waiting += other.waiting;
    copying += other.copying;
    queueing += other.queueing;
  }
};

}  // namespace kintsugi::core
