// Vectors in the plane: their projections onto the first two principal components, as inspect/web/pictures.py.

import { dot, length } from "./tensor.js";

const SPACE = 8; // directions that are followed together
const ROUNDS = 12;

// The projections of centred rows, and the share of their variance that the plane shows.
export function leadingDirections(rows) {
  let space = orthogonal(rows.slice(0, SPACE));
  for (let round = 0; round < ROUNDS; round += 1) space = orthogonal(timesTransposed(rows, projected(rows, space)));
  const inside = projected(rows, space);
  const [first, second] = eigenvectors(timesTransposed(inside, inside));
  const columns = [first, second].map((vector) => signed(inside.map((row) => dot(row, vector))));
  const total = rows.reduce((sum, row) => sum + dot(row, row), 0);
  const points = rows.map((_, i) => columns.map((column) => column[i]));
  return { points, share: columns.reduce((sum, column) => sum + dot(column, column), 0) / total };
}

// The sign of each direction is fixed, so that snapshots can be compared: its largest coordinate is positive.
function signed(column) {
  const largest = column.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));
  return largest < 0 ? column.map((value) => -value) : column;
}

const projected = (rows, space) => rows.map((row) => space.map((direction) => dot(row, direction)));

// The columns of rowsᵀ x values, each as a vector.
const timesTransposed = (rows, values) =>
  values[0].map((_, column) => {
    const sum = new Float64Array(rows[0].length);
    rows.forEach((row, i) => row.forEach((value, c) => (sum[c] += value * values[i][column])));
    return sum;
  });

// Gram and Schmidt: vectors of length 1 at right angles to each other that span the same space.
function orthogonal(vectors) {
  const found = [];
  for (const vector of vectors) {
    const left = Float64Array.from(vector);
    for (const _ of [1, 2]) {
      for (const other of found) {
        const share = dot(left, other);
        left.forEach((value, c) => (left[c] = value - share * other[c]));
      }
    }
    const size = length(left) || 1;
    found.push(left.map((value) => value / size));
  }
  return found;
}

// The eigenvectors of a symmetric matrix, that of the largest eigenvalue first: Jacobi's rotations.
function eigenvectors(matrix) {
  const a = matrix.map((row) => Float64Array.from(row));
  const count = a.length;
  const vectors = a.map((_, i) => Float64Array.from(a, (_row, j) => +(i === j)));
  for (let sweep = 0; sweep < 30; sweep += 1) {
    for (let p = 0; p < count; p += 1) {
      for (let q = p + 1; q < count; q += 1) {
        if (a[p][q] === 0) continue;
        const angle = 0.5 * Math.atan2(2 * a[p][q], a[q][q] - a[p][p]);
        const [c, s] = [Math.cos(angle), Math.sin(angle)];
        const turn = (x, y) => [c * x - s * y, s * x + c * y];
        for (let i = 0; i < count; i += 1) [a[i][p], a[i][q]] = turn(a[i][p], a[i][q]);
        for (let i = 0; i < count; i += 1) [a[p][i], a[q][i]] = turn(a[p][i], a[q][i]);
        for (let i = 0; i < count; i += 1) [vectors[p][i], vectors[q][i]] = turn(vectors[p][i], vectors[q][i]);
      }
    }
  }
  return [...vectors.keys()].sort((p, q) => a[q][q] - a[p][p]).map((p) => vectors[p]);
}
