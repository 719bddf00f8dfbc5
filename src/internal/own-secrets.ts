/** Variables that may hold Fleet's own secrets: no code of users sees them, neither where it runs nor where it is only read. */
export const OWN_SECRETS: readonly string[] = [
  "FLEET_STORE",
  "FLEET_WORKER_STORE",
  "FLEET_TOKEN",
  "FLEET_MASTER",
];
