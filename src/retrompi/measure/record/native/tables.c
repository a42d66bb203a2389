// Hash tables, groups as text, datatypes as codes.
#include "recorder.h"

// --- a hash table with open addressing; key + 1 is stored so that 0 is an empty slot -----------------------------------------

static size_t place(const Map *m, uint64_t key) {
  uint64_t h = key * 0x9E3779B97F4A7C15u;
  h ^= h >> 29;
  return (size_t)h & (m->slots - 1);
}

void *map_get(const Map *m, uint64_t key) {
  if (m->used == 0) return NULL;
  for (size_t i = place(m, key);; i = (i + 1) & (m->slots - 1)) {
    if (m->value[i] == NULL) return NULL;
    if (m->key[i] == key) return m->value[i];
  }
}

static void insert(Map *m, uint64_t key, void *value) {
  size_t i = place(m, key);
  while (m->value[i] != NULL && m->key[i] != key) i = (i + 1) & (m->slots - 1);
  m->used += m->value[i] == NULL;
  m->key[i] = key;
  m->value[i] = value;
}

void map_put(Map *m, uint64_t key, void *value) {
  if (2 * (m->used + 1) > m->slots) {
    Map bigger = {.slots = m->slots == 0 ? 64 : 2 * m->slots};
    bigger.key = calloc(bigger.slots, sizeof *bigger.key);
    bigger.value = calloc(bigger.slots, sizeof *bigger.value);
    if (bigger.key == NULL || bigger.value == NULL) abort();
    for (size_t i = 0; i < m->slots; i++)
      if (m->value[i] != NULL) insert(&bigger, m->key[i], m->value[i]);
    free(m->key);
    free(m->value);
    *m = bigger;
  }
  insert(m, key, value);
}

void map_remove(Map *m, uint64_t key) {
  if (m->used == 0) return;
  const size_t mask = m->slots - 1;
  size_t i = place(m, key);
  while (m->value[i] != NULL && m->key[i] != key) i = (i + 1) & mask;
  if (m->value[i] == NULL) return;
  m->used--;
  // Entries displaced past this slot move back, so that no search ends early.
  for (size_t j = (i + 1) & mask; m->value[j] != NULL; j = (j + 1) & mask) {
    const size_t home = place(m, m->key[j]);
    if (((j - home) & mask) >= ((j - i) & mask)) {
      m->key[i] = m->key[j];
      m->value[i] = m->value[j];
      i = j;
    }
  }
  m->value[i] = NULL;
}

// --- groups -----------------------------------------------------------------------------------------------------------------

// R, A-B and A-B:STEP, ascending; two members are never shorter as a range.
char *group_text(char *p, const int *ranks, int n) {
  *p++ = ' ';
  for (int i = 0; i < n;) {
    int end = i + 1;
    const int step = end < n ? ranks[end] - ranks[i] : 0;
    if (step > 0)
      while (end + 1 < n && ranks[end + 1] - ranks[end] == step) end++;
    if (i > 0) *p++ = ',';
    p = digits(p, ranks[i]);
    if (step > 0 && end - i >= 2) {
      *p++ = '-';
      p = digits(p, ranks[end]);
      if (step != 1) p = digits(text(p, ":"), step);
      i = end + 1;
    } else {
      i++;
    }
  }
  return p;
}

int *ranks_of_group(Rank *r, MPI_Group group, int *n) {
  MPI_Group world;
  PMPI_Group_size(group, n);
  int *const from = malloc(sizeof(int) * (size_t)(2 * *n + 2));
  int *const to = from + *n + 1;
  if (from == NULL) abort();
  for (int i = 0; i < *n; i++) from[i] = i;
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  if (*n > 0) PMPI_Group_translate_ranks(group, *n, from, world, to);
  PMPI_Group_free(&world);
  memcpy(from, to, sizeof(int) * (size_t)*n);
  (void)r;
  return from;
}

// --- datatypes --------------------------------------------------------------------------------------------------------------

// Sizes as defined by the trace format: a type whose size differs here is written as bytes.
typedef struct {
  uint64_t handle;
  int code, size;
} Named;
static Named named[96];
static int named_count;
static Map by_handle;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void name_type(MPI_Datatype type, int code, int size) {
  int real = 0;
  if (type == MPI_DATATYPE_NULL || map_get(&by_handle, KEY(type)) != NULL) return;
  if (PMPI_Type_size(type, &real) != MPI_SUCCESS || real != size) return;
  named[named_count] = (Named){KEY(type), code, size};
  map_put(&by_handle, KEY(type), &named[named_count++]);
}

static void name_types(void) {
  const struct {
    MPI_Datatype type;
    int code, size;
  } all[] = {
      {MPI_DOUBLE, 0, 8},
      {MPI_INT, 1, 4},
      {MPI_CHAR, 2, 1},
      {MPI_SHORT, 3, 2},
      {MPI_LONG, 4, 8},
      {MPI_FLOAT, 5, 4},
      {MPI_BYTE, 6, 1},
      {MPI_LONG_LONG, 7, 8},
      {MPI_SIGNED_CHAR, 8, 1},
      {MPI_UNSIGNED_CHAR, 9, 1},
      {MPI_UNSIGNED_SHORT, 10, 2},
      {MPI_UNSIGNED, 11, 4},
      {MPI_UNSIGNED_LONG, 12, 8},
      {MPI_UNSIGNED_LONG_LONG, 13, 8},
      {MPI_LONG_DOUBLE, 14, 16},
      {MPI_WCHAR, 15, 4},
      {MPI_C_BOOL, 16, 1},
      {MPI_INT8_T, 17, 1},
      {MPI_INT16_T, 18, 2},
      {MPI_INT32_T, 19, 4},
      {MPI_INT64_T, 20, 8},
      {MPI_UINT8_T, 21, 1},
      {MPI_UINT16_T, 22, 2},
      {MPI_UINT32_T, 23, 4},
      {MPI_UINT64_T, 24, 8},
      {MPI_C_FLOAT_COMPLEX, 25, 8},
      {MPI_C_DOUBLE_COMPLEX, 26, 16},
      {MPI_C_LONG_DOUBLE_COMPLEX, 27, 32},
      {MPI_AINT, 28, 8},
      {MPI_OFFSET, 29, 8},
      {MPI_FLOAT_INT, 30, 8},
      {MPI_2INT, 34, 8},
      {MPI_COUNT, 59, 8},
      {MPI_PACKED, 57, 1},
      // Fortran types, under SMPI's codes
      {MPI_INTEGER, 1, 4},
      {MPI_REAL, 5, 4},
      {MPI_DOUBLE_PRECISION, 0, 8},
      {MPI_CHARACTER, 2, 1},
      {MPI_LOGICAL, 1, 4},
      {MPI_COMPLEX, 25, 8},
      {MPI_DOUBLE_COMPLEX, 26, 16},
      {MPI_2INTEGER, 34, 8},
      {MPI_REAL4, 39, 4},
      {MPI_REAL8, 40, 8},
      {MPI_INTEGER4, 47, 4},
      {MPI_INTEGER8, 48, 8},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) name_type(all[i].type, all[i].code, all[i].size);
}

int64_t bytes_of(int64_t count, MPI_Datatype type) {
  if (count == 0 || type == MPI_DATATYPE_NULL) return 0;
  MPI_Count size = 0;
  PMPI_Type_size_x(type, &size);
  return count * (int64_t)size;
}

Data data_of(int64_t count, MPI_Datatype type) {
  static __thread uint64_t last_handle;
  static __thread int last_code = -1;
  if (last_code >= 0 && KEY(type) == last_handle) return (Data){count, last_code};
  pthread_once(&once, name_types);
  const Named *const n = map_get(&by_handle, KEY(type));
  if (n == NULL) return (Data){bytes_of(count, type), T_BYTE};
  last_handle = KEY(type);
  last_code = n->code;
  return (Data){count, n->code};
}
