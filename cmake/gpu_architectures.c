/* Prints the compute capability of every GPU that NVIDIA's driver offers, such as 90, one a line: none where there is no
   driver or no GPU. */
#include <dlfcn.h>
#include <stdio.h>

enum { compute_capability_major = 75, compute_capability_minor = 76 }; /* of CUdevice_attribute */

typedef int (*init_function)(unsigned);
typedef int (*count_function)(int*);
typedef int (*device_function)(int*, int);
typedef int (*attribute_function)(int*, int, int);

int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) return 0;
  const init_function init = (init_function)dlsym(driver, "cuInit");
  const count_function count_devices = (count_function)dlsym(driver, "cuDeviceGetCount");
  const device_function get_device = (device_function)dlsym(driver, "cuDeviceGet");
  const attribute_function get_attribute = (attribute_function)dlsym(driver, "cuDeviceGetAttribute");
  if (init == NULL || count_devices == NULL || get_device == NULL || get_attribute == NULL) return 0;
  int count = 0;
  if (init(0) != 0 || count_devices(&count) != 0) return 0;
  for (int i = 0; i < count; ++i) {
    int device = 0, major = 0, minor = 0;
    if (get_device(&device, i) != 0) continue;
    if (get_attribute(&major, compute_capability_major, device) != 0) continue;
    if (get_attribute(&minor, compute_capability_minor, device) != 0) continue;
    printf("%d\n", 10 * major + minor);
  }
  return 0;
}
