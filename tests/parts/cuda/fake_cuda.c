/* libcuda.so.1 for tests: as many of CUDA's first calls as a doctor makes.
 *
 * FAKE_CUDA_INIT is the code of cuInit (0), FAKE_CUDA_WAIT the seconds it takes, FAKE_CUDA_MULTICAST
 * one digit a device (11111111).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *setting(const char *name, const char *usual) {
    const char *found = getenv(name);
    return found ? found : usual;
}
int cuInit(unsigned flags) {
    (void)flags;
    sleep((unsigned)atoi(setting("FAKE_CUDA_WAIT", "0")));
    return atoi(setting("FAKE_CUDA_INIT", "0"));
}
int cuGetErrorName(int code, const char **to) {
    *to = code == 802 ? "CUDA_ERROR_SYSTEM_NOT_READY"
        : code == 804 ? "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE" : "CUDA_ERROR_UNKNOWN";
    return 0;
}
int cuDeviceGetCount(int *to) { *to = (int)strlen(setting("FAKE_CUDA_MULTICAST", "11111111")); return 0; }
int cuDeviceGet(int *to, int index) { *to = index; return 0; }
int cuDeviceGetAttribute(int *to, int what, int device) {
    if (what != 132) return 1;
    *to = setting("FAKE_CUDA_MULTICAST", "11111111")[device] == '1';
    return 0;
}
