"""The programs on which MixPert (LCTES 2024) was judged, over Kintsugi's public Python calls only."""
