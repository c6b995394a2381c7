/* The few calls of the driver's library that triage/probes/multicast.py makes.

   FAKE_MULTICAST: words NAME=VALUE, separated by blanks: gpus (8), attribute (1), init, create,
   add (0: the code that the call returns). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <unistd.h>

static int told(const char *name, int usual)
{
    const char *all = getenv("FAKE_MULTICAST");
    size_t length = strlen(name);
    for (const char *at = all; at && *at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
        if (!strncmp(at, name, length) && at[length] == '=')
            return atoi(at + length + 1);
    return usual;
}

int cuInit(unsigned flags)
{
    (void)flags;
    int code = told("init", 0);
    if (code == -1)
        for (;;)
            pause();
    if (code == -2)
        raise(SIGSEGV);
    return code;
}

int cuDeviceGetCount(int *count) { *count = told("gpus", 8); return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == 132 ? told("attribute", 1) : 0;
    return 0;
}

int cuMulticastGetGranularity(size_t *size, const void *wanted, int option)
{
    (void)wanted;
    (void)option;
    *size = 2u << 20;
    return 0;
}

int cuMulticastCreate(unsigned long long *handle, const void *wanted)
{
    (void)wanted;
    *handle = 7;
    return told("create", 0);
}

int cuMulticastAddDevice(unsigned long long handle, int device)
{
    (void)device;
    return handle == 7 ? told("add", 0) : 1;
}
