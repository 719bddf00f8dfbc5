// `fleet-framework/client`
export { createClient, type CallOptions, type Client, type ClientOptions } from "./client.ts";
export { API_ROOT, ROUTES, type RouteName } from "./routes.ts";
