// A driver library for tests: takes the calls with the driver's own types and records what arrived.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct { int id; char pad[4]; union { char room[64]; struct { unsigned x, y, z; } cluster; } value; } Attribute;
typedef struct {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, shared;
  void *stream;
  Attribute *attributes;
  unsigned count;
} Config;

uint64_t seen[64];
int next_status;
static int current = -1, depth;

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int *n) { *n = 2; return 0; }
int cuCtxGetDevice(int *d) { if (current < 0) return 201; *d = current; return 0; }
int cuCtxSetCurrent(void *c) { current = (int)((intptr_t)c - 100); return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)(intptr_t)(100 + d); return 0; }
static int stack[8];
int cuCtxPushCurrent_v2(void *c) { stack[depth++] = current; return cuCtxSetCurrent(c); }
int cuCtxPopCurrent_v2(void **c) { *c = 0; current = stack[--depth]; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 97 ? 232448 : a == 75 ? 9 : d; return 0; }
int cuThreadExchangeStreamCaptureMode(int *mode) { static int now = 0; int old = now; now = *mode; *mode = old; seen[60] = now; return 0; }
int cuModuleLoadData(void **m, const void *image) { seen[61] = seen[60]; if (memcmp(image, "\x7f" "ELF\0x", 6)) return 200; *m = (void *)0x1111000011110000; return 0; }
int cuModuleGetFunction(void **f, void *m, const char *name) { if (m != (void *)0x1111000011110000 || strcmp(name, "add")) return 500; *f = (void *)0x2222000022220000; return 0; }
int cuModuleUnload(void *m) { seen[62] = (uint64_t)m; seen[63] = current; return 0; }
int cuFuncSetAttribute(void *f, int a, int v) { seen[50 + (a == 14)] = v; return f == (void *)0x2222000022220000 ? 0 : 1; }
int cuFuncLoad(void *f) { seen[52] = (uint64_t)f; return 0; }
int cuGetErrorName(int s, const char **n) { *n = s == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR"; return 0; }
int cuGetErrorString(int s, const char **n) { (void)s; *n = "words"; return 0; }

int cuLaunchKernelEx(const Config *c, void *f, void **params, void **extra) {
  unsigned head[7] = {c->gridX, c->gridY, c->gridZ, c->blockX, c->blockY, c->blockZ, c->shared};
  for (int i = 0; i < 7; i++) seen[i] = head[i];
  seen[7] = (uint64_t)c->stream; seen[8] = c->count; seen[9] = (uint64_t)f; seen[10] = (uint64_t)extra;
  if (c->count) { seen[11] = c->attributes->id; seen[12] = c->attributes->value.cluster.x; seen[13] = c->attributes->value.cluster.y; seen[14] = c->attributes->value.cluster.z; }
  for (int i = 0; i < 4; i++) memcpy(&seen[16 + i], params[i], 8);
  seen[20] = current;
  return next_status;
}

int cuTensorMapEncodeTiled(void *map, int dtype, unsigned rank, void *address, const uint64_t *dims, const uint64_t *strides,
                           const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int l2, int fill) {
  uint64_t all[] = {dtype, rank, (uint64_t)address, dims[0], dims[1], strides[0], box[0], box[1], steps[0], steps[1], interleave, swizzle, l2, fill};
  memcpy(map, all, sizeof all);
  return (uint64_t)map % 64 ? 1 : 0;
}

static char memory[1 << 16];
int cuMemAlloc_v2(uint64_t *p, size_t n) { if (n > sizeof memory) return 2; *p = (uint64_t)memory; return 0; }
int cuMemFree_v2(uint64_t p) { seen[40] = p; return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t d, const void *h, size_t n, void *s) { memcpy((void *)d, h, n); seen[41] = (uint64_t)s; return 0; }
int cuMemcpyDtoHAsync_v2(void *h, uint64_t d, size_t n, void *s) { memcpy(h, (void *)d, n); seen[42] = (uint64_t)s; return 0; }
int cuStreamSynchronize(void *s) { seen[43] = (uint64_t)s; return next_status; }
