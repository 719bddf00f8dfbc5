export interface Limits {
  /** An alert is raised from here on. */
  raisePercent: number;
  /** And cleared only so far below: a value that swings around the limit makes one alert, not many. */
  marginPercent: number;
}

/** What a new value does to an alert that is on or off. */
export function judge(raised: boolean, value: number, limits: Limits): "raised" | "cleared" | "unchanged" {
  if (!raised && value >= limits.raisePercent) return "raised";
  if (raised && value < limits.raisePercent - limits.marginPercent) return "cleared";
  return "unchanged";
}
