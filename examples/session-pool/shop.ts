// A small web application of our own: a login form, at most a few sessions per account, sessions that expire. It stands for the user's own
// site, and it watches that no session is used by two at once.
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

export interface ShopOptions {
  accounts: Readonly<Record<string, string>>;
  sessionsPerAccount: number;
  sessionSeconds: number;
  /** How long a page takes, in ms. */
  pageMs: number;
}

export interface ShopFigures {
  logins: number;
  loginsRefused: number;
  expired: number;
  pages: number;
  pagesRefused: number;
  /** Requests that came while another one of the same session was being answered. Must stay 0. */
  shared: number;
}

interface Session {
  account: string;
  until: number;
  busy: boolean;
}

export class Shop {
  readonly figures: ShopFigures = {
    logins: 0,
    loginsRefused: 0,
    expired: 0,
    pages: 0,
    pagesRefused: 0,
    shared: 0,
  };
  readonly #options: ShopOptions;
  readonly #sessions = new Map<string, Session>();
  readonly #server: Server;

  constructor(options: ShopOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, "127.0.0.1", resolve);
    });
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#expire();
    const route = `${request.method} ${request.url}`;
    if (route === "GET /login") return page(response, 200, FORM);
    if (route === "POST /login") return this.#login(await bodyOf(request), response);
    if (route === "GET /orders") return this.#orders(cookieOf(request), response);
    if (route === "GET /figures") return page(response, 200, JSON.stringify(this.figures));
    page(response, 404, "not here");
  }

  #login(form: URLSearchParams, response: ServerResponse): void {
    const account = form.get("user") ?? "";
    if (account === "" || this.#options.accounts[account] !== form.get("password")) {
      this.figures.loginsRefused += 1;
      return page(response, 403, "wrong user or password");
    }
    const own = [...this.#sessions.values()].filter((session) => session.account === account);
    if (own.length >= this.#options.sessionsPerAccount) {
      this.figures.loginsRefused += 1;
      return page(response, 429, "too many sessions of this account");
    }
    const id = randomUUID();
    this.#sessions.set(id, { account, until: Date.now() + this.#options.sessionSeconds * 1000, busy: false });
    this.figures.logins += 1;
    response.setHeader("set-cookie", `session=${id}; HttpOnly`);
    page(response, 200, "welcome");
  }

  #orders(id: string, response: ServerResponse): void {
    const session = this.#sessions.get(id);
    if (session === undefined) {
      this.figures.pagesRefused += 1;
      return page(response, 401, "log in first");
    }
    if (session.busy) this.figures.shared += 1;
    session.busy = true;
    this.figures.pages += 1;
    setTimeout(() => {
      session.busy = false;
      page(response, 200, `orders of ${session.account}`);
    }, this.#options.pageMs);
  }

  #expire(): void {
    for (const [id, session] of this.#sessions) {
      if (session.until > Date.now() || session.busy) continue;
      this.#sessions.delete(id);
      this.figures.expired += 1;
    }
  }
}

const FORM = `<form method="post"><input name="user"><input name="password" type="password"><button>Log in</button></form>`;

function page(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { "content-type": "text/html" }).end(body);
}

async function bodyOf(request: IncomingMessage): Promise<URLSearchParams> {
  let text = "";
  for await (const chunk of request) text += String(chunk).slice(0, 10_000 - text.length);
  return new URLSearchParams(text);
}

function cookieOf(request: IncomingMessage): string {
  return /(?:^|; )session=([^;]+)/.exec(request.headers.cookie ?? "")?.[1] ?? "";
}
