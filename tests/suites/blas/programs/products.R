# Products, solutions and factorizations of R, each against the same numbers by other operations; then the bits of
# the products, as a sum of all words modulo a prime.
n <- 150
i <- row(matrix(0, n, n))
j <- col(matrix(0, n, n))
a <- (i * 7919 + j * 104729 + i * j) %% 1009 / 1009 - 0.5
b <- (i * 3571 + j * 15485 + i * j * 3) %% 997 / 997 - 0.5
z <- a + 1i * b
by_sums <- matrix(0, n, n)
for (p in 1:n) by_sums <- by_sums + outer(a[, p], b[p, ])
size <- function(x) sqrt(sum(Mod(x)^2))
check <- function(name, difference, scale)
  if (!isTRUE(size(difference) <= 1e-13 * n * scale)) stop(name, " differs by ", size(difference))
options(matprod = "blas")
products <- list(a %*% b, t(a) %*% b, crossprod(a, b), tcrossprod(a, b), crossprod(a), z %*% z)
check("a b", products[[1]] - by_sums, size(a) * size(b))
check("crossprod", products[[2]] - products[[3]], size(a) * size(b))
check("complex", Re(products[[6]]) - (a %*% a - b %*% b), size(z)^2)
check("symmetric", products[[5]] - t(products[[5]]), size(a)^2)
well <- tcrossprod(a) + n * diag(n)
check("solution", well %*% solve(well, b) - b, size(b))
check("cholesky", crossprod(chol(well)) - well, size(well))
factors <- qr(a, LAPACK = TRUE)
check("qr", qr.Q(factors) %*% qr.R(factors) - a[, factors$pivot], size(a))
values <- eigen(well, symmetric = TRUE)
check("eigenvectors", well %*% values$vectors - values$vectors %*% diag(values$values), size(well))
parts <- svd(b)
check("singular values", parts$u %*% diag(parts$d) %*% t(parts$v) - b, size(b))
hash <- 0
for (product in products) {
  bytes <- as.integer(writeBin(c(Re(product), Im(product)), raw(), endian = "little"))
  for (byte in bytes) hash <- (hash * 257 + byte) %% 2147483647
}
cat("bits", hash, "\n")
