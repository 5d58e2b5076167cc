/** The words of one translation that the other does not have. */

/**
 * The indices of the words of `mine` outside the longest common subsequence with `other`.
 * @param {string[]} mine
 * @param {string[]} other
 */
export function differences(mine, other) {
  const common = Array.from({ length: mine.length + 1 }, () => new Array(other.length + 1).fill(0));
  for (let i = mine.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      common[i][j] = mine[i] === other[j]
        ? common[i + 1][j + 1] + 1
        : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const own = new Set(mine.keys());
  for (let i = 0, j = 0; i < mine.length && j < other.length;) {
    if (mine[i] === other[j]) { own.delete(i); i += 1; j += 1; }
    else if (common[i + 1][j] >= common[i][j + 1]) i += 1;
    else j += 1;
  }
  return [...own];
}
