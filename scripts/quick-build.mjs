// Brings dist/ up to date without checking or declaring types: a fraction of the full build's time, for those who only want to see
// something run. The next full build (`build.mjs --if-needed`) still does its whole work.
import { bundle } from "./bundle.mjs";
import { BUILT, isBuilt, QUICK, swapIn } from "./dist.mjs";

/** Does nothing when dist/ is newer than every source. */
export async function quickBuild() {
  if (!isBuilt([BUILT, QUICK])) await swapIn(QUICK, bundle);
}
