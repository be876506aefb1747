% Products, solutions and factorizations of Octave, each against the same numbers by other operations; then a hash of
% the products' bits.
n = 150;
[i, j] = ndgrid(1:n, 1:n);
a = mod(i * 7919 + j * 104729 + i .* j, 1009) / 1009 - 0.5;
b = mod(i * 3571 + j * 15485 + i .* j * 3, 997) / 997 - 0.5;
z = a + 1i * b;
by_sums = zeros(n);
for p = 1:n
  by_sums += a(:, p) .* b(p, :);
end
check = @(name, difference, size) assert(norm(difference, "fro") <= 1e-13 * n * size, name);
products = {a * b, a' * b, a * b', a * a', single(a) * single(b), z * z', z * z};
check("a b", products{1} - by_sums, norm(a, "fro") * norm(b, "fro"));
check("single", double(products{5}) - by_sums, 1e7 * norm(a, "fro") * norm(b, "fro"));
check("transposes", products{2} - (b' * a)', norm(a, "fro") * norm(b, "fro"));
check("complex", real(products{7}) - (a * a - b * b), norm(z, "fro") ^ 2);
check("symmetric", products{4} - products{4}', norm(a, "fro") ^ 2);
well = a * a' + n * eye(n);
check("solution", well * (well \ b) - b, norm(b, "fro"));
check("cholesky", chol(well)' * chol(well) - well, norm(well, "fro"));
[q, r] = qr(a);
check("qr", q * r - a, norm(a, "fro"));
[l, u, p] = lu(a);
check("lu", l * u - p * a, norm(a, "fro"));
[v, d] = eig(well);
check("eigenvectors", well * v - v * d, norm(well, "fro"));
[u, s, v] = svd(b);
check("singular values", u * s * v' - b, norm(b, "fro"));
text = "";
for product = products
  text = [text, hash("md5", typecast([real(product{1})(:); imag(product{1})(:)]', "char"))];
end
printf("bits %s\n", hash("md5", text));
