/* An LD_AUDIT library beside a preloaded drop-in: names of the drop-in that are bound to another library are bound to the
   drop-in instead. It reaches what a preload does not: libraries loaded with RTLD_DEEPBIND, and functions taken by dlsym
   from a library's handle.

   The dynamic linker keeps an auditing library in a namespace of its own, with copies of all libraries that it needs. So
   this one computes nothing and needs libc alone: it hands out addresses in the program's own copy of the drop-in.
   KINTSUGI_DROP_IN is the file name of the drop-in as far as ".so". */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

struct name {
  const char* text;
  uintptr_t address;
};

/* Names that the drop-in exports, in order. Written while the program is started, in one thread. */
static struct name* names;
static size_t name_count;

static int compare(const void* left, const void* right) {
  return strcmp(((const struct name*)left)->text, ((const struct name*)right)->text);
}

/* Base name of a path. */
static const char* file_of(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

/* Returns the address that a value of the dynamic section means. Most dynamic linkers have replaced it by the address;
   others leave the offset from the beginning of the library. */
static uintptr_t address_of(const struct link_map* map, uintptr_t value) {
  return value < map->l_addr ? map->l_addr + value : value;
}

/* Returns the number of symbols: the largest index in the chains of DT_GNU_HASH, plus one. The table is a head of four
   words, the Bloom filter, the buckets, then a chain word for each symbol from `first` on, whose lowest bit ends a chain. */
static size_t count_symbols(const uint32_t* hash) {
  const uint32_t bucket_count = hash[0];
  const uint32_t first = hash[1];
  const uint32_t bloom_words = hash[2];
  const uint32_t* buckets = (const uint32_t*)((const uintptr_t*)(hash + 4) + bloom_words);
  const uint32_t* chains = buckets + bucket_count;
  uint32_t last = 0;
  for (uint32_t i = 0; i < bucket_count; ++i)
    if (buckets[i] > last) last = buckets[i];
  if (last < first) return 0;
  while ((chains[last - first] & 1u) == 0) ++last;
  return last + 1;
}

/* Fills `names` with the functions that the drop-in exports. */
static void read_names(const struct link_map* map) {
  const ElfW(Sym)* symbols = NULL;
  const char* texts = NULL;
  const uint32_t* hash = NULL;
  for (const ElfW(Dyn)* dynamic = map->l_ld; dynamic->d_tag != DT_NULL; ++dynamic) {
    const uintptr_t address = address_of(map, dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_SYMTAB) symbols = (const ElfW(Sym)*)address;
    if (dynamic->d_tag == DT_STRTAB) texts = (const char*)address;
    if (dynamic->d_tag == DT_GNU_HASH) hash = (const uint32_t*)address;
  }
  if (symbols == NULL || texts == NULL || hash == NULL) return;
  const size_t count = count_symbols(hash);
  names = malloc(count * sizeof *names);
  if (names == NULL) return;
  for (size_t i = 0; i < count; ++i) {
    if (symbols[i].st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC) continue;
    names[name_count++] = (struct name){texts + symbols[i].st_name, map->l_addr + symbols[i].st_value};
  }
  qsort(names, name_count, sizeof *names, compare);
}

EXPORTED unsigned int la_version(unsigned int version) {
  return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* Sets a library's cookie to 1 if it is the drop-in or libkintsugi, on which the drop-in is built. Look-ups of these two are
   left as they are, since they look for the functions behind the drop-in. */
EXPORTED unsigned int la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
  const char* file = file_of(map->l_name);
  if (space != LM_ID_BASE) return 0;
  if (names == NULL && strncmp(file, KINTSUGI_DROP_IN, strlen(KINTSUGI_DROP_IN)) == 0) read_names(map);
  *cookie = strncmp(file, "libkintsugi", strlen("libkintsugi")) == 0;
  return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

/* Returns the address to which a name is bound: the drop-in's, if it exports the name, for look-ups of other libraries. */
EXPORTED uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned int index, uintptr_t* from, uintptr_t* to,
                                unsigned int* flags, const char* text) {
  (void)index, (void)to, (void)flags;
  if (*from != 0) return symbol->st_value;
  const struct name sought = {text, 0};
  const struct name* found =
      name_count > 0 ? bsearch(&sought, names, name_count, sizeof *names, compare) : NULL;
  return found != NULL ? found->address : symbol->st_value;
}
