/* Stubs with the names of cuBLAS, for programs that take it from a library path. A stub has no code: it needs
   the drop-in, then the real library under another name (libcublas_real.so.13), so that a look-up finds the
   drop-in's functions first and cuBLAS's behind them. `kintsugi run --library-path` makes a folder with both. */
