// `fleet-framework/master`
export { createMaster, type CreateMasterOptions } from "./create-master.ts";
export type { Master } from "./master.ts";
