/* libnvidia-ml.so.1 for tests: eight B300 that do nothing, unless a file says otherwise.
 *
 *   gcc -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 fake_nvml.c
 *
 * FAKE_NVML names a file of lines `NAME=VALUE`, read again at every call that finds it changed.
 * NAME is `system.KEY`, `all.KEY` or `INDEX.KEY`; a later line beats an earlier one, one GPU
 * beats all. The keys and their usual values are in `usual`. `KEY` may also be
 *   fail.FUNCTION   the function answers with this NVML code; `fail.*` each function (a lost GPU)
 *   wait.FUNCTION   it takes so many milliseconds
 * FAKE_NVML_HELD names a folder: a file `INDEX.PID` with a number is memory (MiB) that this
 * process holds for as long as it lives; any other name after the dot holds it without a process.
 */
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPUS 16
#define LINES 512
#define MB (1024ull * 1024ull)
typedef unsigned long long wide;
typedef struct { int number; } card;
struct line { char name[80]; char value[80]; };

static const struct line usual[] = {
    {"system.driver", "580.95.05"}, {"system.nvml", "13.580.95.05"}, {"system.cuda", "13000"},
    {"system.count", "8"}, {"all.name", "NVIDIA B300 SXM6 AC"}, {"all.total", "275040"},
    {"all.reserved", "640"}, {"all.used", "0"}, {"all.busy", "0"}, {"all.memory_busy", "0"},
    {"all.power", "180000"}, {"all.power_limit", "1100000"}, {"all.clock", "120"},
    {"all.memory_clock", "3996"}, {"all.clock_max", "2032"}, {"all.temperature", "33"},
    {"all.reasons", "1"}, {"all.capability", "103"}, {"all.mig", "0"}, {"all.ecc", "1"},
    {"all.ecc_uncorrected", "0"}, {"all.remap_pending", "0"}, {"all.remap_failed", "0"},
    {"all.compute_mode", "0"}, {"all.persistence", "1"}, {"all.links", "18"}, {"all.link", "1"},
    {"all.p2p", "0"}, {"all.fabric_state", "3"}, {"all.fabric_status", "0"},
    {"all.fabric_clique", "1"}, {"all.fabric_health", "1"}, {"all.fabric_version", "3"},
    {"all.virtual", "0"}, {"all.link_kib", "0"}, {"all.xid", "0"},
};
static struct line given[LINES];
static int lines, opened;
static struct timespec changed;
static card cards[GPUS];

static void refresh(void) {
    const char *path = getenv("FAKE_NVML");
    struct stat info;
    if (!path || stat(path, &info)) { lines = 0; changed.tv_sec = 0; return; }
    if (lines && !memcmp(&info.st_mtim, &changed, sizeof changed)) return;
    FILE *file = fopen(path, "r");
    if (!file) return;
    for (lines = 0; lines < LINES; lines += 1) {
        struct line *l = &given[lines];
        if (fscanf(file, " %79[^=\n]=%79[^\n]", l->name, l->value) != 2) break;
    }
    fclose(file);
    changed = info.st_mtim;
}

static const char *text(int gpu, const char *key) {
    char own[80], all[80];
    if (gpu < 0) snprintf(own, sizeof own, "system.%s", key);
    else snprintf(own, sizeof own, "%d.%s", gpu, key);
    snprintf(all, sizeof all, "all.%s", key);
    for (int pass = 0; pass < 2; pass++)
        for (int i = lines - 1; i >= 0; i--)
            if (!strcmp(given[i].name, pass ? all : own)) return given[i].value;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (!strcmp(usual[i].name, gpu < 0 ? own : all)) return usual[i].value;
    return NULL;
}

static wide value(int gpu, const char *key) {
    const char *found = text(gpu, key);
    return found ? strtoull(found, NULL, 0) : 0;
}

static int enter(int gpu, const char *function) {
    char key[80];
    const char *names[] = {"*", function}, *found;
    refresh();
    for (int i = 0; i < 2; i++) {
        snprintf(key, sizeof key, "wait.%s", names[i]);
        if ((found = text(gpu, key))) usleep((useconds_t)atol(found) * 1000);
        snprintf(key, sizeof key, "fail.%s", names[i]);
        if ((found = text(gpu, key))) return atoi(found);
    }
    return 0;
}

/* A process that has ended but was not waited for holds nothing. */
static int alive(const char *pid) {
    char path[300], state = 'Z';
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 'Z';
    fclose(file);
    return state != 'Z' && state != 'X';
}

struct process { unsigned pid; wide bytes; unsigned gpu_instance, compute_instance; };

/* Sum of what is held of a GPU in bytes; the processes that hold it. */
static wide held(int gpu, struct process *out, unsigned room, unsigned *many) {
    const char *folder = getenv("FAKE_NVML_HELD");
    DIR *dir = folder ? opendir(folder) : NULL;
    wide sum = 0;
    *many = 0;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *dot = strchr(e->d_name, '.'), path[4096];
        if (!dot || dot == e->d_name || atoi(e->d_name) != gpu || e->d_name[0] < '0') continue;
        int process = strspn(dot + 1, "0123456789") == strlen(dot + 1);
        if (process && !alive(dot + 1)) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *file = fopen(path, "r");
        wide mib = 0;
        if (file && fscanf(file, "%llu", &mib) != 1) mib = 0;
        if (file) fclose(file);
        sum += mib * MB;
        if (!process) continue;
        if (out && *many < room)
            out[*many] = (struct process){(unsigned)atoi(dot + 1), mib * MB, ~0u, ~0u};
        *many += 1;
    }
    if (dir) closedir(dir);
    return sum;
}

static int put(const char *from, char *to, unsigned room) {
    if (!from) return 3;
    if (strlen(from) >= room) return 7;
    strcpy(to, from);
    return 0;
}

#define SYSTEM(signature) int signature { if (!opened) return 1; int e = enter(-1, __func__); if (e) return e;
#define DEVICE(signature) int signature { \
    if (!opened) return 1; \
    if (!h) return 2; \
    int g = h->number, e = enter(g, __func__); \
    if (e) return e;
#define DONE return 0; }
#define NUMBER(function, type, key) DEVICE(function(card *h, type *to)) *to = (type)value(g, key); DONE
#define TEXT(function, key) DEVICE(function(card *h, char *to, unsigned n)) return put(text(g, key), to, n); }
#define TWICE(function, key) \
    DEVICE(function(card *h, unsigned *now, unsigned *next)) *now = *next = (unsigned)value(g, key); DONE

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    int e = enter(-1, "nvmlInit_v2");
    for (int i = 0; i < GPUS; i++) cards[i].number = i;
    opened += !e;
    return e;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { if (!opened) return 1; opened--; return 0; }
const char *nvmlErrorString(int e) {
    static const char *names[] = {"Success", "Uninitialized", "Invalid Argument", "Not Supported",
        "Insufficient Permissions", "Already Initialized", "Not Found", "Insufficient Size",
        "Insufficient External Power", "Driver Not Loaded", "Timeout", "Interrupt Request Issue",
        "NVML Shared Library Not Found", "Function Not Found", "Corrupted infoROM", "GPU is lost",
        "GPU requires restart", "The operating system has blocked the request.",
        "RM has detected an NVML/RM version mismatch."};
    return e >= 0 && e < (int)(sizeof names / sizeof *names) ? names[e] : "Unknown Error";
}
SYSTEM(nvmlSystemGetDriverVersion(char *to, unsigned n)) return put(text(-1, "driver"), to, n); }
SYSTEM(nvmlSystemGetNVMLVersion(char *to, unsigned n)) return put(text(-1, "nvml"), to, n); }
SYSTEM(nvmlSystemGetCudaDriverVersion(int *to)) *to = (int)value(-1, "cuda"); DONE
SYSTEM(nvmlSystemGetCudaDriverVersion_v2(int *to)) *to = (int)value(-1, "cuda"); DONE
SYSTEM(nvmlDeviceGetCount_v2(unsigned *to)) *to = (unsigned)value(-1, "count"); DONE
int nvmlDeviceGetHandleByIndex_v2(unsigned i, card **to) {
    if (!opened) return 1;
    if (i >= value(-1, "count") || i >= GPUS) return 2;
    int e = enter((int)i, __func__);
    if (!e) *to = &cards[i];
    return e;
}
TEXT(nvmlDeviceGetName, "name")
DEVICE(nvmlDeviceGetUUID(card *h, char *to, unsigned n))
    snprintf(to, n, "GPU-00000000-0000-4000-8000-%012d", g); DONE
struct pci { char old[16]; unsigned domain, bus, device, id, subsystem; char now[32]; };
DEVICE(nvmlDeviceGetPciInfo_v3(card *h, struct pci *to))
    memset(to, 0, sizeof *to); to->bus = 16u * (unsigned)(g + 1);
    snprintf(to->now, sizeof to->now, "00000000:%02X:00.0", to->bus); DONE
struct memory { wide total, free, used; };
struct memory2 { unsigned version; wide total, reserved, free, used; };
static struct memory2 memory(int g) {
    unsigned n;
    wide total = value(g, "total") * MB, kept = value(g, "reserved") * MB;
    wide used = value(g, "used") * MB + held(g, NULL, 0, &n);
    if (used > total - kept) used = total - kept;
    return (struct memory2){0, total, kept, total - kept - used, used};
}
DEVICE(nvmlDeviceGetMemoryInfo(card *h, struct memory *to))
    struct memory2 m = memory(g); *to = (struct memory){m.total, m.free, m.used + m.reserved}; DONE
DEVICE(nvmlDeviceGetMemoryInfo_v2(card *h, struct memory2 *to))
    unsigned v = to->version; *to = memory(g); to->version = v; DONE
DEVICE(nvmlDeviceGetComputeRunningProcesses_v3(card *h, unsigned *n, struct process *to))
    unsigned many, room = to ? *n : 0; held(g, to, room, &many); *n = many; return many > room ? 7 : 0; }
struct rates { unsigned gpu, memory; };
DEVICE(nvmlDeviceGetUtilizationRates(card *h, struct rates *to))
    to->gpu = (unsigned)value(g, "busy"); to->memory = (unsigned)value(g, "memory_busy"); DONE
NUMBER(nvmlDeviceGetPowerUsage, unsigned, "power")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned, "power_limit")
DEVICE(nvmlDeviceGetClockInfo(card *h, int kind, unsigned *to))
    *to = (unsigned)value(g, kind == 2 ? "memory_clock" : "clock"); DONE
DEVICE(nvmlDeviceGetMaxClockInfo(card *h, int kind, unsigned *to))
    *to = (unsigned)value(g, kind == 2 ? "memory_clock" : "clock_max"); DONE
DEVICE(nvmlDeviceGetTemperature(card *h, int sensor, unsigned *to))
    (void)sensor; *to = (unsigned)value(g, "temperature"); DONE
struct temperature { unsigned version; int sensor, degrees; };
DEVICE(nvmlDeviceGetTemperatureV(card *h, struct temperature *to))
    to->degrees = (int)value(g, "temperature"); DONE
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, wide, "reasons")
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, wide, "reasons")
NUMBER(nvmlDeviceGetPersistenceMode, unsigned, "persistence")
NUMBER(nvmlDeviceGetComputeMode, unsigned, "compute_mode")
NUMBER(nvmlDeviceGetVirtualizationMode, unsigned, "virtual")
TWICE(nvmlDeviceGetMigMode, "mig")
TWICE(nvmlDeviceGetEccMode, "ecc")
DEVICE(nvmlDeviceGetTotalEccErrors(card *h, int kind, int counter, wide *to))
    (void)counter; *to = kind ? value(g, "ecc_uncorrected") : 0; DONE
DEVICE(nvmlDeviceGetRemappedRows(card *h, unsigned *c, unsigned *u, unsigned *pending, unsigned *failed))
    *c = *u = 0; *pending = (unsigned)value(g, "remap_pending");
    *failed = (unsigned)value(g, "remap_failed"); DONE
DEVICE(nvmlDeviceGetCudaComputeCapability(card *h, int *major, int *minor))
    *major = (int)value(g, "capability") / 10; *minor = (int)value(g, "capability") % 10; DONE
DEVICE(nvmlDeviceGetNvLinkState(card *h, unsigned link, unsigned *to))
    char key[32];
    if (link >= value(g, "links")) return 2;
    snprintf(key, sizeof key, "link.%u", link);
    *to = (unsigned)value(g, text(g, key) ? key : "link"); DONE
DEVICE(nvmlDeviceGetP2PStatus(card *h, card *other, int what, int *to))
    char key[32];
    (void)what;
    snprintf(key, sizeof key, "p2p.%d", other->number);
    *to = (int)value(g, text(g, key) ? key : "p2p"); DONE
DEVICE(nvmlDeviceGetNumaNodeId(card *h, unsigned *to))
    *to = text(g, "numa") ? (unsigned)value(g, "numa") : (unsigned)(g >= 4); DONE
struct fabric {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned mask;
    unsigned char health;
};
DEVICE(nvmlDeviceGetGpuFabricInfoV(card *h, struct fabric *to))
    unsigned version = to->version >> 24;
    if (version > value(g, "fabric_version")) return 25;
    memset(to->cluster, 7, sizeof to->cluster);
    to->status = (int)value(g, "fabric_status"); to->clique = (unsigned)value(g, "fabric_clique");
    to->state = (unsigned char)value(g, "fabric_state"); to->mask = 0;
    if (version >= 3) to->health = (unsigned char)value(g, "fabric_health");
    DONE
/* Counters of all links: `link_kib` is what went each way; none without links. */
struct field {
    unsigned id, scope;
    long long time, latency;
    unsigned type;
    int code;
    union { wide number; double real; } value;
};
DEVICE(nvmlDeviceGetFieldValues(card *h, int n, struct field *to))
    for (int i = 0; i < n; i++) {
        to[i].code = (to[i].id == 138 || to[i].id == 139) && value(g, "links") ? 0 : 3;
        to[i].type = 3;
        to[i].value.number = value(g, "link_kib");
    }
    DONE
/* A GPU whose key `xid` is not 0 reports it once. */
struct event { card *device; wide type, data; unsigned gpu_instance, compute_instance; };
static wide reported[GPUS];
int nvmlEventSetCreate(void **to) { *to = reported; return opened ? 0 : 1; }
int nvmlEventSetFree(void *set) { (void)set; return 0; }
DEVICE(nvmlDeviceRegisterEvents(card *h, wide types, void *set))
    (void)types; (void)set; reported[g] = value(g, "xid"); DONE
DEVICE(nvmlDeviceGetIndex(card *h, unsigned *to)) *to = (unsigned)g; DONE
int nvmlEventSetWait_v2(void *set, struct event *to, unsigned ms) {
    (void)set; (void)ms;
    refresh();
    for (int i = 0; i < GPUS; i++) {
        wide now = value(i, "xid");
        if (now == reported[i]) continue;
        reported[i] = now;
        *to = (struct event){&cards[i], 8, now, ~0u, ~0u};
        return 0;
    }
    return 10;
}
